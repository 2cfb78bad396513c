/* SPDX-License-Identifier: MIT */
/*
 * The child processes of `cuatomic bench`. Standard output of a child is a pipe, for its records
 * and its text. Standard error is another pipe, so that its lines and the progress do not mix.
 * SIGHUP, SIGINT, SIGQUIT, SIGPIPE (nobody reads the table) and SIGTERM stop the child; its
 * finished rows are kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
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
static sigset_t signals_before; /* the mask of the caller */
static struct sigaction alarm_before;

/* Descriptors of outputs whose reader may stall, and /dev/null. */
static int outputs[5];
static volatile sig_atomic_t n_outputs;
static int null_output = -1;

/* A line buffer of a pipe. */
struct stream {
	int fd; /* -1: closed */
	char text[LINE_BYTES];
	size_t n;
};

struct child {
	pid_t pid;
	int ended, status;
	int stopped;                /* the last signal sent to it, or 0 */
	double stop_time, end_time; /* when it was stopped, and when it ended */
	int complained;             /* it wrote to standard error */
	struct stream out, err;
};

/*
 * A write to a pipe or a terminal may wait for ever. After a stop signal, /dev/null replaces each
 * output that accepts nothing. This signal interrupts the write that waits, and later writes
 * cannot wait.
 */
static void drop_stalled_outputs(int signal)
{
	const int error = errno;

	(void)signal;
	for (int i = 0; i < n_outputs; i++) {
		struct pollfd p = {outputs[i], POLLOUT, 0};

		if (poll(&p, 1, 0) == 0)
			dup2(null_output, outputs[i]);
	}
	alarm(1);
	errno = error;
}

static void catch_signal(int signal)
{
	if (!caught) {
		caught = signal;
		alarm(1);
	}
}

int bench_caught_signal(void)
{
	return caught;
}

void bench_watch_output(int fd)
{
	if ((size_t)n_outputs < sizeof(outputs) / sizeof(outputs[0])) {
		outputs[n_outputs] = fd;
		n_outputs++;
	}
}

void bench_catch_signals(void)
{
	struct sigaction action, before;
	sigset_t alarm;

	null_output = open("/dev/null", O_WRONLY | O_CLOEXEC);
	bench_watch_output(STDOUT_FILENO);
	bench_watch_output(STDERR_FILENO);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	memset(&action, 0, sizeof(action));
	/* without SA_RESTART */
	action.sa_handler = drop_stalled_outputs;
	sigaction(SIGALRM, &action, &alarm_before);
	sigprocmask(SIG_UNBLOCK, &alarm, &signals_before);
	action.sa_handler = catch_signal;
	action.sa_flags = SA_RESTART;
	for (size_t i = 0; i < STOP_SIGNALS; i++) {
		/* a signal that the caller ignores stays ignored */
		if (sigaction(stop_signals[i], NULL, &before) || before.sa_handler == SIG_IGN)
			continue;
		sigaction(stop_signals[i], &action, NULL);
	}
}

static void restore_signals(void)
{
	struct sigaction now;

	for (size_t i = 0; i < STOP_SIGNALS; i++) {
		if (!sigaction(stop_signals[i], NULL, &now) && now.sa_handler == catch_signal)
			signal(stop_signals[i], SIG_DFL);
	}
	sigaction(SIGALRM, &alarm_before, NULL);
	sigprocmask(SIG_SETMASK, &signals_before, NULL);
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

/* The ends of the two pipes: 0 and 1 of standard output, 2 and 3 of standard error. */
static void close_pipes(int pipes[4])
{
	for (int i = 0; i < 4; i++) {
		if (pipes[i] >= 0)
			close(pipes[i]);
		pipes[i] = -1;
	}
}

static void run_child(const struct bench_job *job, int pipes[4])
{
	char seconds[32];

	restore_signals();
	dup2(pipes[1], STDOUT_FILENO);
	dup2(pipes[3], STDERR_FILENO);
	close_pipes(pipes);
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
	int pipes[4] = {-1, -1, -1, -1};

	c->pid = -1;
	/* the child must not print the text of this process again */
	fflush(NULL);
	if (!pipe(pipes) && !pipe(pipes + 2))
		c->pid = fork();
	if (!c->pid)
		run_child(job, pipes);
	if (c->pid < 0) {
		tool_error("bench %s: %s", job->name, strerror(errno));
		close_pipes(pipes);
		return TOOL_FAILED;
	}
	c->out.fd = pipes[0];
	c->err.fd = pipes[2];
	close(pipes[1]);
	close(pipes[3]);
	return TOOL_OK;
}

/* Notes whether the child has ended. */
static int has_ended(struct child *c)
{
	if (!c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid) {
		c->ended = 1;
		c->end_time = stats_now();
	}
	return c->ended;
}

static void stop_child(struct child *c, int signal)
{
	if (c->stopped == signal || c->stopped == SIGKILL)
		return;
	c->stopped = signal;
	c->stop_time = stats_now();
	if (c->ended)
		return;
	kill(c->pid, signal);
	/* a suspended child acts on SIGTERM when it continues */
	kill(c->pid, SIGCONT);
}

/*
 * Stops the child after a signal or a failed write of the table. Returns whether to read on: another
 * process may keep the pipes open.
 */
static int still_runs(struct child *c)
{
	if (caught || ferror(stdout))
		stop_child(c, SIGTERM);
	if (c->ended && stats_now() - c->end_time >= STOP_SECONDS)
		return 0;
	if (!c->stopped || stats_now() - c->stop_time < STOP_SECONDS)
		return 1;
	if (c->stopped == SIGKILL)
		return 0;
	stop_child(c, SIGKILL);
	return 1;
}

/* ---- the lines of the child ---- */

static int bad_record(const struct results *r, struct child *c, const char *what)
{
	progress_clear();
	tool_error("bench %s: %s", r->bench, what);
	stop_child(c, SIGKILL);
	return 0;
}

/* Reads a line of a benchmark. Returns 0 if it is malformed. */
static int read_out(struct results *r, struct child *c, char *line)
{
	if (!results_read(r, line))
		return bad_record(r, c, "the benchmark wrote a malformed record");
	progress_show(r);
	return 1;
}

/* Forwards a line of standard error. */
static int read_err(struct results *r, struct child *c, char *line)
{
	(void)r;
	c->complained = 1;
	progress_clear();
	fflush(stdout);
	fprintf(stderr, "%s\n", line);
	return 1;
}

typedef int read_line(struct results *r, struct child *c, char *line);

/* Reads the whole lines in the buffer. Returns 0 after a malformed line. */
static int read_whole_lines(struct results *r, struct child *c, struct stream *s, read_line *read)
{
	char *line = s->text, *end;

	while ((end = memchr(line, '\n', s->n - (size_t)(line - s->text)))) {
		*end = '\0';
		if (!read(r, c, line))
			return 0;
		line = end + 1;
	}
	s->n -= (size_t)(line - s->text);
	memmove(s->text, line, s->n);
	if (s->n + 1 < sizeof(s->text))
		return 1;
	s->text[s->n] = '\0';
	s->n = 0;
	return read(r, c, s->text);
}

static void close_stream(struct stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* Reads a pipe that has input or is closed. Returns 0 after a malformed line. */
static int read_stream(struct results *r, struct child *c, struct stream *s, read_line *read_one)
{
	const ssize_t got = read(s->fd, s->text + s->n, sizeof(s->text) - 1 - s->n);

	if (got < 0 && errno == EINTR)
		return 1;
	if (got <= 0) {
		close_stream(s);
		return 1;
	}
	s->n += (size_t)got;
	return read_whole_lines(r, c, s, read_one);
}

/*
 * Waits for input, a signal or the time. Returns whether there is input. A signal just before the
 * wait is noticed after it.
 */
static int wait_for(struct pollfd set[2], double seconds)
{
	return poll(set, 2, (int)(seconds * 1e3)) > 0;
}

/* Reads what the child has written after its last line break. */
static int read_rest(struct results *r, struct child *c)
{
	c->out.text[c->out.n] = '\0';
	c->err.text[c->err.n] = '\0';
	if (c->err.n)
		read_err(r, c, c->err.text);
	if (!c->out.n || c->stopped)
		return 1;
	/* text may lack its last line break; a record without a line break is not whole */
	if (c->out.text[0] == '%')
		return bad_record(r, c, "the last record is not whole");
	return read_out(r, c, c->out.text);
}

/* Reads the child until it ends or closes the pipes. Returns 0 if it wrote a malformed record. */
static int read_child(struct results *r, struct child *c)
{
	int good = 1;

	while (good && (c->out.fd >= 0 || c->err.fd >= 0) && still_runs(c)) {
		struct pollfd set[2] = {{c->out.fd, POLLIN, 0}, {c->err.fd, POLLIN, 0}};
		/* first, so that all output of a child that has ended is in the pipes */
		const int ended = has_ended(c);

		if (!wait_for(set, ended ? 0 : PROGRESS_SECONDS)) {
			if (ended)
				break;
			progress_show(r);
			continue;
		}
		if (set[1].revents)
			good = read_stream(r, c, &c->err, read_err);
		if (good && set[0].revents)
			good = read_stream(r, c, &c->out, read_out);
	}
	good = good && read_rest(r, c);
	progress_clear();
	return good;
}

/* Waits until the child has ended. */
static void wait_for_end(struct child *c)
{
	close_stream(&c->out);
	close_stream(&c->err);
	while (!has_ended(c)) {
		struct pollfd none[2] = {{-1, 0, 0}, {-1, 0, 0}};

		wait_for(none, END_SECONDS);
		still_runs(c);
	}
}

int bench_run_filter(char *const *argv, int in, int out, int err, int *ended)
{
	struct child c = {.out.fd = -1, .err.fd = -1};

	fflush(NULL);
	c.pid = fork();
	if (!c.pid) {
		restore_signals();
		if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
		    dup2(err, STDERR_FILENO) >= 0)
			execv(argv[0], argv);
		dprintf(STDERR_FILENO, "%s\n", strerror(errno));
		_exit(127);
	}
	if (c.pid < 0)
		tool_error("%s: %s", argv[0], strerror(errno));
	else
		wait_for_end(&c);
	*ended = c.status;
	return c.pid < 0 || c.stopped ? TOOL_FAILED : TOOL_OK;
}

/* Returns the exit status of the command. A child of status 1 or 2 may have described its error. */
static int end_child(const struct bench_job *job, struct child *c)
{
	const int status = WEXITSTATUS(c->status);

	if (caught)
		return TOOL_FAILED;
	if (WIFEXITED(c->status) && (!status || (status <= TOOL_USAGE && c->complained)))
		return status;
	if (c->stopped)
		return TOOL_FAILED;
	if (WIFSIGNALED(c->status))
		tool_error("bench %s: the benchmark was ended by signal %d (%s)", job->name,
			   WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
	else
		tool_error("bench %s: the benchmark failed with status %d", job->name, status);
	return status == TOOL_USAGE ? TOOL_USAGE : TOOL_FAILED;
}

/* Whether a benchmark has written the rows that it announced. */
static int has_all_rows(const struct results *r)
{
	if (r->done >= r->planned)
		return 1;
	tool_error("bench %s: the benchmark wrote %zu of %zu rows", r->bench, r->done, r->planned);
	return 0;
}

int bench_run_job(const struct bench_job *job, struct results *r)
{
	struct child c = {0};
	int status, good;

	results_begin(r, job->name, job->seconds);
	status = start_child(job, &c);
	if (!status) {
		good = read_child(r, &c);
		wait_for_end(&c);
		status = end_child(job, &c);
		if (!status && (!good || (!c.stopped && !has_all_rows(r))))
			status = TOOL_FAILED;
	}
	r->failed |= status != TOOL_OK;
	return status;
}
