/* SPDX-License-Identifier: MIT */
/*
 * The child processes of `cuatomic bench`. Standard output of a child is a pipe, for its records
 * and its text. SIGHUP, SIGINT, SIGQUIT, SIGPIPE (nobody reads the table) and SIGTERM stop the
 * child; its finished rows are kept.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* Seconds between two updates of the progress. */
#define PROGRESS_SECONDS 0.5
/* Seconds between two checks whether the child has ended. */
#define END_SECONDS 0.005
/* Seconds from SIGTERM to SIGKILL. */
#define STOP_SECONDS 2.0
/* Longest line of a child; a longer line is divided. */
#define LINE_BYTES 16384

static const int stop_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM};
#define STOP_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

static volatile sig_atomic_t caught;
static sigset_t open_signals; /* the mask before the stop signals were blocked */

struct child {
	pid_t pid;
	int pipe;
	int stopped; /* the last signal sent to it, or 0 */
	double stop_time;
	char line[LINE_BYTES];
	size_t n; /* bytes in line */
};

static void catch_signal(int signal)
{
	caught = signal;
}

int bench_caught_signal(void)
{
	return caught;
}

/* The signals arrive only while the command waits for a child. */
void bench_catch_signals(void)
{
	struct sigaction action, before;
	sigset_t blocked;

	sigemptyset(&blocked);
	memset(&action, 0, sizeof(action));
	action.sa_handler = catch_signal;
	for (size_t i = 0; i < STOP_SIGNALS; i++) {
		/* a signal that the caller ignores stays ignored */
		if (sigaction(stop_signals[i], NULL, &before) || before.sa_handler == SIG_IGN)
			continue;
		sigaction(stop_signals[i], &action, NULL);
		sigaddset(&blocked, stop_signals[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, &open_signals);
}

static void restore_signals(void)
{
	struct sigaction now;

	for (size_t i = 0; i < STOP_SIGNALS; i++) {
		if (!sigaction(stop_signals[i], NULL, &now) && now.sa_handler == catch_signal)
			signal(stop_signals[i], SIG_DFL);
	}
	sigprocmask(SIG_SETMASK, &open_signals, NULL);
}

void bench_raise_signal(void)
{
	if (!caught)
		return;
	fflush(stdout);
	restore_signals();
	raise(caught);
}

/* ---- the child ---- */

static void run_child(const struct bench_job *job, int pipe)
{
	char seconds[32];

	restore_signals();
	dup2(pipe, STDOUT_FILENO);
	close(pipe);
	setenv(BENCH_ENV_RECORDS, "1", 1);
	if (job->seconds > 0) {
		snprintf(seconds, sizeof(seconds), "%.9g", job->seconds);
		setenv(BENCH_ENV_SECONDS, seconds, 1);
	}
	if (job->argv) {
		execv(job->argv[0], job->argv);
		tool_error("%s: %s", job->argv[0], strerror(errno));
		_exit(TOOL_FAILED);
	}
	bench_env()->records = STDOUT_FILENO;
	bench_env()->start = stats_now();
	bench_env()->seconds = job->seconds;
	bench_env()->planned = bench_env()->done = 0;
	bench_program(job->name);
	job->run(job);
	_exit(tool_finish(TOOL_OK));
}

static int start_child(const struct bench_job *job, struct child *c)
{
	int ends[2];

	if (pipe(ends)) {
		tool_error("bench %s: %s", job->name, strerror(errno));
		return TOOL_FAILED;
	}
	/* the child must not print the text of this process again */
	fflush(NULL);
	c->pid = fork();
	if (!c->pid) {
		close(ends[0]);
		run_child(job, ends[1]);
	}
	close(ends[1]);
	c->pipe = ends[0];
	if (c->pid > 0)
		return TOOL_OK;
	tool_error("bench %s: %s", job->name, strerror(errno));
	close(ends[0]);
	return TOOL_FAILED;
}

/* ---- the lines of the child ---- */

static void stop_child(struct child *c, int signal)
{
	if (c->stopped == signal || c->stopped == SIGKILL)
		return;
	c->stopped = signal;
	c->stop_time = stats_now();
	kill(c->pid, signal);
	/* a suspended child acts on SIGTERM when it continues */
	kill(c->pid, SIGCONT);
}

/* Reads a whole line. Returns 0 if it is malformed. */
static int read_child_line(struct results *r, struct child *c, char *line)
{
	if (results_read(r, line)) {
		progress_show(r);
		return 1;
	}
	progress_clear();
	tool_error("bench %s: the benchmark wrote a malformed record", r->bench);
	stop_child(c, SIGKILL);
	return 0;
}

/* Reads the whole lines in the buffer. Returns 0 after a malformed line. */
static int read_whole_lines(struct results *r, struct child *c)
{
	char *line = c->line, *end;

	while ((end = memchr(line, '\n', c->n - (size_t)(line - c->line)))) {
		*end = '\0';
		if (!read_child_line(r, c, line))
			return 0;
		line = end + 1;
	}
	c->n -= (size_t)(line - c->line);
	memmove(c->line, line, c->n);
	if (c->n + 1 < sizeof(c->line))
		return 1;
	c->line[c->n] = '\0';
	c->n = 0;
	return read_child_line(r, c, c->line);
}

/* Waits for input, a signal or the time. Returns whether there is input. pipe -1: no input. */
static int wait_for(int pipe, double seconds)
{
	const struct timespec pause = {0, (long)(seconds * 1e9)};
	fd_set set;

	FD_ZERO(&set);
	if (pipe >= 0)
		FD_SET(pipe, &set);
	return pselect(pipe + 1, &set, NULL, NULL, &pause, &open_signals) > 0;
}

/* Stops the child after a signal or a failed write of the table. Returns 1 if the child is to be read further. */
static int still_runs(struct child *c)
{
	if (caught || ferror(stdout))
		stop_child(c, SIGTERM);
	if (!c->stopped || stats_now() - c->stop_time < STOP_SECONDS)
		return 1;
	/* a process of the child may keep the pipe open */
	if (c->stopped == SIGKILL)
		return 0;
	stop_child(c, SIGKILL);
	return 1;
}

/* Reads the child until it closes the pipe. Returns 0 if it wrote a malformed record. */
static int read_child(struct results *r, struct child *c)
{
	int good = 1;

	while (good && still_runs(c)) {
		ssize_t got;

		if (!wait_for(c->pipe, PROGRESS_SECONDS)) {
			progress_show(r);
			continue;
		}
		got = read(c->pipe, c->line + c->n, sizeof(c->line) - 1 - c->n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		c->n += (size_t)got;
		good = read_whole_lines(r, c);
	}
	/* text may lack its last line break; a record without a line break is not whole */
	if (good && c->n && !c->stopped) {
		c->line[c->n] = '\0';
		good = c->line[0] != '%' && results_read(r, c->line);
		if (!good) {
			progress_clear();
			tool_error("bench %s: the last record is not whole", r->bench);
		}
	}
	progress_clear();
	return good;
}

/* Returns the exit status of the command. The child has described its status 1 or 2. */
static int end_child(const struct bench_job *job, struct child *c)
{
	int status;

	close(c->pipe);
	/* the stop signals arrive only inside wait_for */
	while (!waitpid(c->pid, &status, WNOHANG)) {
		wait_for(-1, END_SECONDS);
		still_runs(c);
	}
	if (caught)
		return TOOL_FAILED;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= TOOL_USAGE)
		return WEXITSTATUS(status);
	if (c->stopped)
		return TOOL_FAILED;
	if (WIFSIGNALED(status))
		tool_error("bench %s: the benchmark was ended by signal %d (%s)", job->name,
			   WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		tool_error("bench %s: the benchmark failed with status %d", job->name,
			   WEXITSTATUS(status));
	return TOOL_FAILED;
}

int bench_run_job(const struct bench_job *job, struct results *r)
{
	struct child *c = tool_alloc(sizeof(*c));
	int status, good;

	memset(c, 0, sizeof(*c));
	results_begin(r, job->name, job->seconds);
	status = start_child(job, c);
	if (!status) {
		good = read_child(r, c);
		status = end_child(job, c);
		if (!good && !status)
			status = TOOL_FAILED;
	}
	free(c);
	r->failed |= status != TOOL_OK;
	return status;
}
