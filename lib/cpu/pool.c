/* SPDX-License-Identifier: MIT */
/*
 * The threads of the CPU backend. The first call that repays more than one thread creates the
 * context's pool.
 *
 * Fork: the child has only the thread that forked. Before the fork, pthread_atfork's handler locks
 * every pool's mutex, so that the pools are consistent in the child. In the child it marks their
 * threads as gone, and the next call starts new threads.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/internal.h"

struct cua__pool {
	pthread_mutex_t mutex;
	pthread_cond_t work, done;
	pthread_t *threads;
	unsigned n_threads; /* running helpers, without the caller */
	unsigned wanted;
	int stop;
	/* the job: workers from `next` on are not claimed yet; `left` workers have not finished */
	void (*fn)(void *arg, unsigned worker, unsigned workers);
	void *arg;
	unsigned next, workers, left;
	struct cua__pool *newer, *older;
};

static pthread_mutex_t pools_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct cua__pool *pools;
static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&pools_mutex);
	for (struct cua__pool *p = pools; p; p = p->older)
		pthread_mutex_lock(&p->mutex);
}

static void after_fork_parent(void)
{
	for (struct cua__pool *p = pools; p; p = p->older)
		pthread_mutex_unlock(&p->mutex);
	pthread_mutex_unlock(&pools_mutex);
}

static void after_fork_child(void)
{
	for (struct cua__pool *p = pools; p; p = p->older) {
		p->n_threads = 0;
		p->next = p->workers = p->left = 0;
		/* the condition variables may count waiters that do not exist in the child */
		pthread_cond_init(&p->work, NULL);
		pthread_cond_init(&p->done, NULL);
		pthread_mutex_unlock(&p->mutex);
	}
	pthread_mutex_unlock(&pools_mutex);
}

static void install_atfork(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* Claims and runs workers until all are claimed. The mutex is held on entry and on return. */
static void run_workers(struct cua__pool *p)
{
	while (p->next < p->workers) {
		unsigned worker = p->next++, workers = p->workers;
		void (*fn)(void *, unsigned, unsigned) = p->fn;
		void *arg = p->arg;

		pthread_mutex_unlock(&p->mutex);
		fn(arg, worker, workers);
		pthread_mutex_lock(&p->mutex);
		if (--p->left == 0)
			pthread_cond_signal(&p->done);
	}
}

static void *helper_main(void *arg)
{
	struct cua__pool *p = arg;

	pthread_mutex_lock(&p->mutex);
	while (!p->stop) {
		run_workers(p);
		if (!p->stop)
			pthread_cond_wait(&p->work, &p->mutex);
	}
	pthread_mutex_unlock(&p->mutex);
	return NULL;
}

static struct cua__pool *pool_create(unsigned threads)
{
	struct cua__pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->wanted = threads - 1;
	p->threads = calloc(p->wanted ? p->wanted : 1, sizeof(*p->threads));
	if (!p->threads) {
		free(p);
		return NULL;
	}
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->done, NULL);
	pthread_once(&atfork_once, install_atfork);
	pthread_mutex_lock(&pools_mutex);
	p->older = pools;
	if (pools)
		pools->newer = p;
	pools = p;
	pthread_mutex_unlock(&pools_mutex);
	return p;
}

void cua__pool_destroy(struct cua__pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->mutex);
	p->stop = 1;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->mutex);
	for (unsigned i = 0; i < p->n_threads; i++)
		pthread_join(p->threads[i], NULL);
	pthread_mutex_lock(&pools_mutex);
	if (p->newer)
		p->newer->older = p->older;
	else
		pools = p->older;
	if (p->older)
		p->older->newer = p->newer;
	pthread_mutex_unlock(&pools_mutex);
	pthread_cond_destroy(&p->work);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->mutex);
	free(p->threads);
	free(p);
}

/*
 * Starts helpers until `count` run. They block signals, so that the program's handlers run on its
 * own threads. Only signals of faults stay unblocked: if they were blocked, a fault would end the
 * process.
 */
static void start_helpers(struct cua__pool *p, unsigned count)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t blocked, before;

	if (p->n_threads >= count)
		return;
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&blocked, own[i]);
	/* not SETMASK: signals that the caller blocks stay blocked */
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	/* if a thread cannot be created, the other threads do its work */
	while (p->n_threads < count &&
	       !pthread_create(&p->threads[p->n_threads], NULL, helper_main, p))
		p->n_threads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cua__parallel(struct cua_context *ctx, unsigned workers,
		   void (*fn)(void *arg, unsigned worker, unsigned workers), void *arg)
{
	struct cua__pool *p;
	int cancel;

	if (workers > 1 && ctx->threads > 1 && !ctx->pool)
		ctx->pool = pool_create(ctx->threads);
	p = ctx->pool;
	if (workers <= 1 || !p) {
		for (unsigned i = 0; i < workers; i++)
			fn(arg, i, workers);
		return;
	}
	/*
	 * `arg` is on this thread's stack, so the thread must not end before the helpers are done
	 */
	cancel = cua__cancel_disable();
	pthread_mutex_lock(&p->mutex);
	start_helpers(p, workers - 1 < p->wanted ? workers - 1 : p->wanted);
	p->fn = fn;
	p->arg = arg;
	p->next = 0;
	p->workers = p->left = workers;
	pthread_cond_broadcast(&p->work);
	run_workers(p);
	while (p->left)
		pthread_cond_wait(&p->done, &p->mutex);
	pthread_mutex_unlock(&p->mutex);
	cua__cancel_restore(cancel);
}

unsigned cua__workers(const struct cua_context *ctx, size_t n, size_t grain)
{
	size_t wanted = n / grain;

	if (wanted >= ctx->threads)
		return ctx->threads;
	return wanted ? (unsigned)wanted : 1;
}
