/* SPDX-License-Identifier: MIT */
/*
 * The model of GPUs of cuda_model.h: devices, memory, streams, and the threads of a block.
 *
 * All calls hold one lock, so work of all devices runs in the thread that waits, one operation after the other.
 */
#undef _FORTIFY_SOURCE /* coroutines longjmp between stacks */

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_model.h"

namespace
{

constexpr unsigned MOST_DEVICES = 8, PROCESSORS = 2, MOST_THREADS = 1024;
constexpr size_t ARENA = (size_t)1 << 36, DEVICE_BYTES = (size_t)2 << 30;
constexpr size_t UNIT = 512, STACK = 128 << 10, POISONED = 16 << 20;
constexpr size_t SHARED_MOST = 227 << 10, SHARED_DEFAULT = 48 << 10;
constexpr unsigned char POISON = 0xa5, FENCE = 0xc3;
/* rounds in which each thread of a block only pauses */
constexpr uint64_t MOST_PAUSES = 20000000;

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "model of GPUs: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	abort();
}

/* ---- random choices ---- */

uint64_t random_state;

uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

/* ---- the threads of a block ---- */

enum state { READY, PAUSED, IN_WARP, IN_ACTIVE, IN_BLOCK, DONE };

struct lane : cuda_model_thread {
	enum state state;
	bool begun;
	jmp_buf at;
	ucontext_t start;
	/* of the operation that it waits in */
	enum cuda_model_warp_op op;
	uint32_t mask, other;
	uint64_t value, result;
	const void *site;
	bool voted;
};

/* The lanes of the thread that runs blocks. Stacks are used again for the next block. */
struct block {
	lane *lanes = nullptr;
	char *stacks = nullptr;
	unsigned n = 0, live = 0, arrived = 0;
	bool vote = false;
	jmp_buf scheduler;
	const std::function<void()> *body = nullptr;

	~block()
	{
		if (stacks)
			munmap(stacks, STACK * MOST_THREADS);
		delete[] lanes;
	}
};
thread_local block own_block;

/* A function call, because a lane must not keep an address of another block's thread. */
__attribute__((noinline)) block &mine()
{
	return own_block;
}

lane *self(void)
{
	return static_cast<lane *>(cuda_model_self);
}

void leave(enum state state)
{
	lane *l = self();

	l->state = state;
	if (!_setjmp(l->at))
		_longjmp(mine().scheduler, 1);
}

void lane_main(void)
{
	for (;;) {
		(*mine().body)();
		leave(DONE);
	}
}

void resume(lane *l)
{
	l->state = READY;
	cuda_model_self = l;
	if (!_setjmp(mine().scheduler)) {
		if (l->begun)
			_longjmp(l->at, 1);
		l->begun = true;
		setcontext(&l->start);
	}
	cuda_model_self = nullptr;
}

void make_lanes(block &b)
{
	b.lanes = new lane[MOST_THREADS]();
	b.stacks = (char *)mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b.stacks == MAP_FAILED)
		fail("no memory for %u stacks", MOST_THREADS);
	for (unsigned i = 0; i < MOST_THREADS; i++) {
		lane *l = &b.lanes[i];

		getcontext(&l->start);
		l->start.uc_stack.ss_sp = b.stacks + STACK * i;
		l->start.uc_stack.ss_size = STACK;
		l->start.uc_link = nullptr;
		makecontext(&l->start, lane_main, 0);
	}
}

/* Releases the lanes of a mask if all have arrived. */
void meet(block &b, const lane *last)
{
	lane *warp = b.lanes + (last - b.lanes) / 32 * 32;
	const uint32_t mask = last->mask;
	uint32_t votes = 0;

	for (unsigned i = 0; i < 32; i++) {
		const lane *l = &warp[i];

		if (!(mask >> i & 1))
			continue;
		if (l->state != IN_WARP || l->mask != mask)
			return;
		if (l->op != last->op)
			fail("lanes of block %u wait in operations %d and %d", l->block.x, l->op,
			     last->op);
		votes |= (uint32_t)(l->value != 0) << i;
	}
	for (unsigned i = 0; i < 32; i++) {
		lane *l = &warp[i];

		if (!(mask >> i & 1))
			continue;
		l->result = votes;
		if (l->op == CUDA_MODEL_SHUFFLE)
			l->result =
				mask >> l->other & 1 ? warp[l->other].value : 0xdeadbeefdeadbeefu;
		if (l->op == CUDA_MODEL_MATCH) {
			l->result = 0;
			for (unsigned k = 0; k < 32; k++)
				if (mask >> k & 1 && warp[k].value == l->value)
					l->result |= (uint64_t)1 << k;
		}
		l->state = READY;
	}
}

void meet_in_block(block &b)
{
	if (!b.arrived || b.arrived < b.live)
		return;
	for (unsigned i = 0; i < b.n; i++)
		if (b.lanes[i].state == IN_BLOCK) {
			b.lanes[i].voted = b.vote;
			b.lanes[i].state = READY;
		}
	b.arrived = 0;
	b.vote = false;
}

/* The lanes of a warp at the same call are active together. Returns whether there are some. */
bool release_active(block &b)
{
	bool some = false;

	for (unsigned i = 0; i < b.n; i++) {
		lane *l = &b.lanes[i], *warp = b.lanes + i / 32 * 32;
		uint32_t mask = 0;

		if (l->state != IN_ACTIVE)
			continue;
		for (unsigned k = 0; k < 32; k++)
			if (warp[k].state == IN_ACTIVE && warp[k].site == l->site)
				mask |= (uint32_t)1 << k;
		for (unsigned k = 0; k < 32; k++)
			if (mask >> k & 1) {
				warp[k].result = mask;
				warp[k].state = READY;
			}
		some = true;
	}
	return some;
}

bool release_paused(block &b)
{
	bool some = false;

	for (unsigned i = 0; i < b.n; i++)
		if (b.lanes[i].state == PAUSED) {
			b.lanes[i].state = READY;
			some = true;
		}
	return some;
}

[[noreturn]] void report_deadlock(const block &b)
{
	static const char *const names[] = {
		"ready",        "paused", "in a warp's operation", "at an active mask",
		"at a barrier", "done"};
	unsigned counts[6] = {0};

	for (unsigned i = 0; i < b.n; i++)
		counts[b.lanes[i].state]++;
	for (unsigned i = 0; i < 6; i++)
		fprintf(stderr, "  %u threads %s\n", counts[i], names[i]);
	fail("block %u does not continue", b.lanes[0].block.x);
}

/* Runs the ready lanes once, from a random lane on. Returns whether any lane did more than pause. */
bool run_ready(block &b, bool *some)
{
	const unsigned first = (unsigned)draw(b.n);
	bool progress = false;

	*some = false;
	for (unsigned k = 0; k < b.n; k++) {
		lane *l = &b.lanes[(first + k) % b.n];

		if (l->state != READY)
			continue;
		*some = true;
		resume(l);
		progress |= l->state != PAUSED;
		if (l->state == IN_WARP)
			meet(b, l);
		if (l->state == IN_BLOCK)
			b.arrived++;
		if (l->state == DONE)
			b.live--;
		meet_in_block(b);
	}
	return progress;
}

void run_block(const std::function<void()> &body, uint3 number, dim3 grid, dim3 size, uint64_t id)
{
	block &b = mine();
	uint64_t pauses = 0;

	if (!b.lanes)
		make_lanes(b);
	b.body = &body;
	b.n = b.live = size.x * size.y * size.z;
	b.arrived = 0;
	b.vote = false;
	for (unsigned i = 0; i < b.n; i++) {
		lane *l = &b.lanes[i];

		l->thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
		l->block = number;
		l->block_size = {size.x, size.y, size.z};
		l->grid_size = {grid.x, grid.y, grid.z};
		l->grid_id = id;
		l->state = READY;
	}
	for (unsigned i = b.n; i % 32; i++)
		b.lanes[i].state = DONE;
	while (b.live) {
		bool some;

		if (run_ready(b, &some))
			pauses = 0;
		if (some || !b.live)
			continue;
		if (release_active(b))
			continue;
		if (!release_paused(b) || ++pauses > MOST_PAUSES)
			report_deadlock(b);
	}
}

/* ---- shared memory ---- */

/* A fence follows the dynamic memory of a block. It is not aligned to more than CUDA promises. */
alignas(32) thread_local char dynamic_memory[16 + SHARED_MOST + 128];

void poison_shared(size_t bytes)
{
	memset(dynamic_memory + 16, POISON, bytes);
	memset(dynamic_memory + 16 + bytes, FENCE, 128);
}

void check_shared(size_t bytes, unsigned number)
{
	for (size_t i = bytes; i < bytes + 128; i++)
		if ((unsigned char)dynamic_memory[16 + i] != FENCE)
			fail("block %u writes byte %zu of %zu of shared memory", number, i, bytes);
}

/* ---- devices ---- */

struct allocation {
	size_t bytes; /* as asked for */
	size_t units; /* of UNIT bytes, with a fence */
};

struct device {
	char *arena;
	std::map<size_t, allocation> used; /* by offset */
	std::map<size_t, size_t> free;     /* offset and units */
	size_t units_used = 0;
	bool peers[MOST_DEVICES] = {false};
	std::map<const void *, size_t> permitted; /* shared memory of kernels */
};

/* Work of a stream, by its number. */
typedef std::pair<struct CUstream_st *, uint64_t> position;

struct operation {
	std::function<void()> run; /* empty: a wait or a mark */
	int device;                /* -1: a copy, or no work */
	std::vector<position> waits;
};

/* Work of a graph. It waits for earlier nodes. */
struct node {
	std::function<void()> run;
	int device;
	std::vector<size_t> after;
};

struct capture {
	struct CUstream_st *origin;
	enum cudaStreamCaptureMode mode;
	const void *thread;
	unsigned long long id;
	std::vector<node> nodes;
	bool invalid = false, ended = false;
};

} // namespace

struct CUstream_st {
	int device;
	bool blocking; /* by the legacy default stream */
	std::deque<operation> queue;
	uint64_t queued = 0, done = 0;
	struct capture *capture = nullptr;
	std::vector<size_t> after; /* the nodes that its next node waits for */

	explicit CUstream_st(int device, bool blocking) : device(device), blocking(blocking)
	{
	}
};

struct CUevent_st {
	int device;
	position at = {nullptr, 0};
	/* of a record in a capture */
	struct capture *capture = nullptr;
	std::vector<size_t> after;

	explicit CUevent_st(int device) : device(device)
	{
	}
};

struct CUgraph_st {
	std::vector<node> nodes;
};

struct CUgraphExec_st {
	std::vector<node> nodes;
	position last = {nullptr, 0};
};

namespace
{

std::recursive_mutex lock_of_all;
typedef std::lock_guard<std::recursive_mutex> guard;

struct machine {
	unsigned n_devices = 4;
	device devices[MOST_DEVICES];
	CUstream_st *defaults[MOST_DEVICES];
	std::vector<CUstream_st *> streams;  /* never freed: work of destroyed streams still runs */
	std::vector<CUstream_st *> branches; /* the streams of graphs */
	std::vector<capture *> captures;     /* never freed: events refer to them */
	std::map<char *, size_t> host;       /* pinned memory */
	uint64_t launches = 0;
	int open = -1; /* the device whose memory is accessible */
};

void on_fault(int, siginfo_t *info, void *);

machine *make(void)
{
	machine *m = new machine;
	const char *count = getenv("CUA_MODEL_DEVICES"), *seed = getenv("CUA_TEST_SEED");
	struct sigaction action = {};

	if (count)
		m->n_devices = (unsigned)atoi(count);
	if (m->n_devices < 1 || m->n_devices > MOST_DEVICES)
		fail("CUA_MODEL_DEVICES is not from 1 to %u", MOST_DEVICES);
	random_state = seed ? strtoull(seed, nullptr, 0) : 1;
	for (unsigned d = 0; d < m->n_devices; d++) {
		void *arena = mmap(nullptr, ARENA, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (arena == MAP_FAILED)
			fail("no address space for the memory of a device");
		m->devices[d].arena = (char *)arena;
		m->devices[d].free[0] = DEVICE_BYTES / UNIT;
		m->defaults[d] = new CUstream_st((int)d, true);
		m->streams.push_back(m->defaults[d]);
	}
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | (int)SA_RESETHAND;
	sigaction(SIGSEGV, &action, nullptr);
	return m;
}

machine &all(void)
{
	static machine *m = make();

	return *m;
}

/* The device of an address in the memory of a device, or -1. */
int device_of(const void *p)
{
	for (unsigned d = 0; d < all().n_devices; d++)
		if ((const char *)p >= all().devices[d].arena &&
		    (const char *)p < all().devices[d].arena + ARENA)
			return (int)d;
	return -1;
}

void on_fault(int, siginfo_t *info, void *)
{
	const int d = device_of(info->si_addr);

	if (d >= 0)
		fprintf(stderr,
			"model of GPUs: %s accesses memory of device %d at %p, thread %d of block %d\n",
			all().open < 0 ? "host code" : "work of another device", d, info->si_addr,
			cuda_model_self ? (int)cuda_model_self->thread.x : -1,
			cuda_model_self ? (int)cuda_model_self->block.x : -1);
	else
		fprintf(stderr, "model of GPUs: an access to %p\n", info->si_addr);
}

void protect(device &d, int access)
{
	if (mprotect(d.arena, DEVICE_BYTES, access))
		fail("mprotect failed");
}

/* Makes the memory of a device and of its peers accessible; -1: of none. */
void open_memory(int number)
{
	machine &m = all();

	if (m.open == number)
		return;
	for (unsigned d = 0; d < m.n_devices; d++) {
		const bool was = m.open >= 0 && (m.open == (int)d || m.devices[m.open].peers[d]);
		const bool is = number >= 0 && (number == (int)d || m.devices[number].peers[d]);

		if (was != is)
			protect(m.devices[d], is ? PROT_READ | PROT_WRITE : PROT_NONE);
	}
	m.open = number;
}

/* Makes the memory of all devices accessible, to copies. */
void open_all(void)
{
	machine &m = all();

	open_memory(-1);
	for (unsigned d = 0; d < m.n_devices; d++)
		protect(m.devices[d], PROT_READ | PROT_WRITE);
}

void close_all(void)
{
	machine &m = all();

	for (unsigned d = 0; d < m.n_devices; d++)
		protect(m.devices[d], PROT_NONE);
}

__thread int current;
__thread cudaError_t last_error;
__thread enum cudaStreamCaptureMode capture_mode;

cudaError_t report(cudaError_t error)
{
	if (error)
		last_error = error;
	return error;
}

/* ---- streams ---- */

/* The default stream of each thread is the legacy default stream here. */
CUstream_st *stream_at(cudaStream_t s)
{
	return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread
		       ? all().defaults[current]
		       : s;
}

bool can_run(const CUstream_st *s)
{
	if (s->queue.empty())
		return false;
	for (const auto &w : s->queue.front().waits)
		if (w.first->done < w.second)
			return false;
	return true;
}

void run_one(CUstream_st *s)
{
	operation o = std::move(s->queue.front());
	fenv_t environment;

	s->queue.pop_front();
	if (o.run) {
		/* a GPU does not know the rounding and the exceptions of the thread that waits */
		fegetenv(&environment);
		fesetenv(FE_DFL_ENV);
		open_memory(o.device);
		o.run();
		fesetenv(&environment);
	}
	s->done++;
}

/* Runs the work of a random stream, if some can run. */
bool run_any(void)
{
	std::vector<CUstream_st *> can;

	for (CUstream_st *s : all().streams)
		if (can_run(s))
			can.push_back(s);
	if (can.empty())
		return false;
	run_one(can[draw(can.size())]);
	return true;
}

/* Runs the first work of s, or the first that this waits for. */
void run_needed(CUstream_st *s)
{
	while (!can_run(s)) {
		CUstream_st *next = nullptr;

		for (const auto &w : s->queue.front().waits)
			if (w.first->done < w.second)
				next = w.first;
		s = next;
	}
	run_one(s);
}

/*
 * The choice of work, until the host waits the next time: any work; or only needed work, after all work of a stream
 * that runs ahead, if there is such a stream. If eager, work may run before the host waits.
 */
struct {
	bool lazy, eager;
	CUstream_st *ahead;
} choice;

void choose(void)
{
	const auto &streams = all().streams;

	choice.lazy = draw(2);
	choice.eager = draw(2);
	choice.ahead = choice.lazy && draw(2) ? streams[draw(streams.size())] : nullptr;
}

/* Runs until s has done its work up to `number`. */
void run_until(CUstream_st *s, uint64_t number)
{
	while (choice.ahead && !choice.ahead->queue.empty())
		run_needed(choice.ahead);
	while (s->done < number)
		if (choice.lazy)
			run_needed(s);
		else if (!run_any())
			fail("streams wait for each other");
	open_memory(-1);
	choose();
}

void run_all(CUstream_st *s)
{
	run_until(s, s->queued);
}

void run_device(int device)
{
	for (size_t i = 0; i < all().streams.size(); i++)
		if (all().streams[i]->device == device)
			run_all(all().streams[i]);
}

/* ---- captures and graphs ---- */

cudaError_t invalidate(capture *c, cudaError_t error)
{
	c->invalid = true;
	return report(error);
}

/* A capture that work in the legacy default stream of a device would wait for, or NULL. */
capture *implicit_capture(int device)
{
	for (CUstream_st *s : all().streams)
		if (s->capture && s->blocking && s->device == device)
			return s->capture;
	return nullptr;
}

/* A call that could disturb captures fails and invalidates them; see cudaThreadExchangeStreamCaptureMode. */
cudaError_t disturb(void)
{
	cudaError_t error = cudaSuccess;

	for (capture *c : all().captures) {
		const bool own = c->thread == &current;

		if (c->ended || c->mode == cudaStreamCaptureModeRelaxed ||
		    capture_mode == cudaStreamCaptureModeRelaxed)
			continue;
		if (own || (c->mode == cudaStreamCaptureModeGlobal &&
			    capture_mode == cudaStreamCaptureModeGlobal))
			error = invalidate(c, cudaErrorStreamCaptureUnsupported);
	}
	return error;
}

/* The same for a call that waits for a stream, or asks for its state. */
cudaError_t disturb_by_wait(const CUstream_st *s)
{
	capture *implicit = s == all().defaults[s->device] ? implicit_capture(s->device) : nullptr;

	if (s->capture)
		return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
	return implicit ? invalidate(implicit, cudaErrorStreamCaptureImplicit) : disturb();
}

cudaError_t add_node(CUstream_st *s, int device, std::function<void()> run)
{
	capture *c = s->capture;

	if (c->invalid)
		return report(cudaErrorStreamCaptureInvalidated);
	if (!run)
		return cudaSuccess;
	c->nodes.push_back({std::move(run), device, s->after});
	s->after = {c->nodes.size() - 1};
	return cudaSuccess;
}

/* Makes the nodes of a capture wait for a captured event. Its stream joins the capture. */
cudaError_t wait_in_capture(CUstream_st *s, const CUevent_st *event)
{
	if (!event->capture || event->capture->ended ||
	    (s->capture && s->capture != event->capture))
		return s->capture ? invalidate(s->capture, cudaErrorStreamCaptureIsolation)
				  : report(cudaErrorStreamCaptureIsolation);
	if (s == all().defaults[s->device])
		return invalidate(event->capture, cudaErrorStreamCaptureImplicit);
	if (event->capture->invalid)
		return report(cudaErrorStreamCaptureInvalidated);
	if (!s->capture)
		s->after.clear();
	s->capture = event->capture;
	s->after.insert(s->after.end(), event->after.begin(), event->after.end());
	return cudaSuccess;
}

/* Whether the origin of a capture waits for all its nodes. */
bool is_joined(const capture *c)
{
	std::vector<bool> reached(c->nodes.size());

	for (size_t i : c->origin->after)
		reached[i] = true;
	for (size_t i = c->nodes.size(); i-- > 0;)
		for (size_t k : c->nodes[i].after)
			reached[k] = reached[k] || reached[i];
	return std::find(reached.begin(), reached.end(), false) == reached.end();
}

void leave_capture(capture *c)
{
	c->ended = true;
	for (CUstream_st *s : all().streams)
		if (s->capture == c)
			s->capture = nullptr;
}

/*
 * A stream of a device for a node: the stream of a node that it waits for, if no node follows there, or an idle
 * stream.
 */
CUstream_st *branch_for(const node &n, int device, const std::vector<position> &at)
{
	for (size_t i : n.after)
		if (at[i].first->queued == at[i].second && at[i].first->device == device)
			return at[i].first;
	for (CUstream_st *s : all().branches)
		if (s->queue.empty() && s->device == device)
			return s;
	all().branches.push_back(new CUstream_st(device, false));
	all().streams.push_back(all().branches.back());
	return all().branches.back();
}

/* ---- work of streams ---- */

/* A stream waits for the legacy default stream of its device, and that for all such streams. */
cudaError_t enqueue(CUstream_st *s, int device, std::function<void()> run,
		    std::vector<position> waits = {})
{
	CUstream_st *first = all().defaults[s->device];

	if (s->capture)
		return add_node(s, device, std::move(run));
	if (s == first) {
		if (capture *c = implicit_capture(s->device))
			return invalidate(c, cudaErrorStreamCaptureImplicit);
		for (CUstream_st *other : all().streams)
			if (other != s && other->blocking && other->device == s->device)
				waits.emplace_back(other, other->queued);
	} else if (s->blocking) {
		waits.emplace_back(first, first->queued);
	}
	s->queue.push_back({std::move(run), device, std::move(waits)});
	s->queued++;
	while (choice.eager && !draw(4))
		run_any();
	open_memory(-1);
	return cudaSuccess;
}

/* ---- memory ---- */

/* Offset and size of the allocation with an address; 0 if there is none. */
const std::pair<const size_t, allocation> *allocation_at(int d, const void *p)
{
	device &dev = all().devices[d];
	const size_t at = (size_t)((const char *)p - dev.arena);
	auto i = dev.used.upper_bound(at);

	if (i == dev.used.begin())
		return nullptr;
	--i;
	return at < i->first + i->second.bytes || at == i->first ? &*i : nullptr;
}

/* The pinned allocation with an address, or NULL. */
const std::pair<char *const, size_t> *pinned_at(const void *p)
{
	auto i = all().host.upper_bound((char *)p);

	if (i == all().host.begin())
		return nullptr;
	--i;
	return (const char *)p < i->first + i->second ? &*i : nullptr;
}

cudaError_t allocate(void **p, size_t bytes)
{
	device &d = all().devices[current];
	const size_t units = bytes / UNIT + 2;

	for (auto i = d.free.begin(); i != d.free.end(); ++i) {
		const size_t at = i->first, rest = i->second - units;

		if (i->second < units)
			continue;
		d.free.erase(i);
		if (rest)
			d.free[at + units * UNIT] = rest;
		d.used[at] = {bytes, units};
		d.units_used += units;
		*p = d.arena + at;
		open_memory(current);
		memset(*p, POISON, std::min(bytes, POISONED));
		memset((char *)*p + bytes, FENCE, units * UNIT - bytes);
		open_memory(-1);
		return cudaSuccess;
	}
	return report(cudaErrorMemoryAllocation);
}

void release(int number, size_t at, const allocation &a)
{
	device &d = all().devices[number];
	size_t units = a.units;

	open_memory(number);
	for (size_t i = a.bytes; i < a.units * UNIT; i++)
		if ((unsigned char)d.arena[at + i] != FENCE)
			fail("byte %zu of an allocation of %zu bytes is written", i, a.bytes);
	open_memory(-1);
	if (units * UNIT > POISONED)
		madvise(d.arena + at, units * UNIT & ~(size_t)4095, MADV_DONTNEED);
	d.units_used -= units;
	d.used.erase(at);
	auto next = d.free.lower_bound(at);
	if (next != d.free.end() && next->first == at + units * UNIT) {
		units += next->second;
		next = d.free.erase(next);
	}
	if (next != d.free.begin()) {
		auto before = std::prev(next);

		if (before->first + before->second * UNIT == at) {
			before->second += units;
			return;
		}
	}
	d.free[at] = units;
}

/* Whether [p, p + bytes) is inside an allocation, or host memory. */
bool is_whole(const void *p, size_t bytes)
{
	const int d = device_of(p);
	const auto *a = d < 0 ? nullptr : allocation_at(d, p);

	return d < 0 || (a && (size_t)((const char *)p - all().devices[d].arena) + bytes <=
				      a->first + a->second.bytes);
}

bool is_pageable(const void *p)
{
	return device_of(p) < 0 && !pinned_at(p);
}

void copy_rows(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width,
	       size_t height)
{
	/* copies between devices need no access of a device to its peer */
	open_all();
	for (size_t i = 0; i < height; i++)
		memmove(to + i * to_pitch, from + i * from_pitch, width);
	close_all();
}

} // namespace

/* ---- for kernels ---- */

__thread struct cuda_model_thread *cuda_model_self;

uint64_t cuda_model_warp(enum cuda_model_warp_op op, uint32_t mask, uint64_t value, uint32_t lane)
{
	struct lane *l = self();

	if (!(mask >> l->thread.x % 32 & 1))
		fail("thread %u calls an operation of a warp without its own lane", l->thread.x);
	l->op = op;
	l->mask = mask;
	l->value = value;
	l->other = lane;
	leave(IN_WARP);
	return self()->result;
}

__attribute__((noinline)) uint32_t cuda_model_active_mask(void)
{
	self()->site = __builtin_return_address(0);
	leave(IN_ACTIVE);
	return (uint32_t)self()->result;
}

int cuda_model_sync_block(int predicate)
{
	mine().vote |= predicate != 0;
	leave(IN_BLOCK);
	return self()->voted;
}

void cuda_model_pause(void)
{
	leave(PAUSED);
}

void *cuda_model_shared(void)
{
	return dynamic_memory + 16;
}

cudaError_t cuda_model_launch(const void *kernel, dim3 grid, dim3 size, size_t shared,
			      cudaStream_t stream, std::function<void()> body)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);
	device &d = all().devices[s->device];
	const auto permitted = d.permitted.find(kernel);
	const size_t most = permitted == d.permitted.end() ? SHARED_DEFAULT : permitted->second;
	const unsigned threads = size.x * size.y * size.z;

	if (s->device != current)
		return report(cudaErrorInvalidResourceHandle);
	if (!threads || threads > MOST_THREADS || !grid.x || grid.y != 1 || grid.z != 1)
		return report(cudaErrorInvalidConfiguration);
	if (shared > most)
		return report(cudaErrorInvalidValue);
	return enqueue(s, s->device, [=] {
		const uint64_t id = ++all().launches;

		for (unsigned i = 0; i < grid.x; i++) {
			poison_shared(shared);
			run_block(body, {i, 0, 0}, grid, size, id);
			check_shared(shared, i);
		}
	});
}

/* ---- the runtime ---- */

extern "C" {

cudaError_t cudaGetLastError(void)
{
	const cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return error ? "an error of the model of GPUs" : "no error";
}

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = 13000;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	return cudaDriverGetVersion(version);
}

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = (int)all().n_devices;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = current;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	if (device < 0 || device >= (int)all().n_devices)
		return report(cudaErrorInvalidDevice);
	current = device;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "model of a GPU");
	p->uuid.bytes[15] = (char)device;
	p->totalGlobalMem = DEVICE_BYTES;
	p->major = 9;
	p->multiProcessorCount = PROCESSORS;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device)
{
	(void)device;
	switch (which) {
	case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
	case cudaDevAttrMultiProcessorCount: *value = PROCESSORS; break;
	case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)SHARED_MOST; break;
	case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 << 10; break;
	case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
	case cudaDevAttrMaxPitch: *value = 0x7fffffff; break;
	case cudaDevAttrCooperativeLaunch: *value = 1; break;
	case cudaDevAttrClockRate:
	case cudaDevAttrMemoryClockRate: *value = 1000000; break;
	case cudaDevAttrGlobalMemoryBusWidth: *value = 64; break;
	default: *value = 0;
	}
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
	snprintf(id, (size_t)bytes, "0000:%02x:00.0", (unsigned)device & 255u);
	return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer;
	return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	guard held(lock_of_all);
	bool *enabled = &all().devices[current].peers[peer];

	(void)flags;
	if (peer == current)
		return report(cudaErrorInvalidDevice);
	if (*enabled)
		return report(cudaErrorPeerAccessAlreadyEnabled);
	*enabled = true;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr which, int device,
				      int peer)
{
	(void)device;
	(void)peer;
	*value = which != cudaDevP2PAttrPerformanceRank;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *kernel)
{
	(void)kernel;
	a->ptxVersion = 90;
	return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute which, int value)
{
	guard held(lock_of_all);

	(void)which;
	if (value < 0 || (size_t)value > SHARED_MOST)
		return report(cudaErrorInvalidValue);
	all().devices[current].permitted[kernel] = (size_t)value;
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
	guard held(lock_of_all);
	const cudaError_t error = disturb();

	return error ? error : allocate(p, bytes);
}

/* Waits for the device, as CUDA does. */
cudaError_t cudaFree(void *p)
{
	guard held(lock_of_all);
	const int d = p ? device_of(p) : -1;
	const auto *a = d < 0 ? nullptr : allocation_at(d, p);

	if (!p)
		return cudaSuccess;
	if (!a || all().devices[d].arena + a->first != p)
		return report(cudaErrorInvalidValue);
	if (const cudaError_t error = disturb())
		return error;
	run_device(d);
	release(d, a->first, a->second);
	return cudaSuccess;
}

cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned flags)
{
	(void)p;
	(void)bytes;
	(void)flags;
	return report(cudaErrorNotSupported);
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
	guard held(lock_of_all);

	(void)flags;
	if (const cudaError_t error = disturb())
		return error;
	*p = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
	if (!*p)
		return report(cudaErrorMemoryAllocation);
	memset(*p, POISON, bytes);
	all().host[(char *)*p] = bytes;
	return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	(void)flags;
	*device = host;
	return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
	guard held(lock_of_all);

	if (!p)
		return cudaSuccess;
	if (!all().host.count((char *)p))
		return report(cudaErrorInvalidValue);
	if (const cudaError_t error = disturb())
		return error;
	for (unsigned d = 0; d < all().n_devices; d++)
		run_device((int)d);
	all().host.erase((char *)p);
	free(p);
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
	guard held(lock_of_all);

	*total = DEVICE_BYTES;
	*available = DEVICE_BYTES - all().devices[current].units_used * UNIT;
	return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
	guard held(lock_of_all);
	const int d = device_of(p);

	memset(a, 0, sizeof(*a));
	a->device = d < 0 ? current : d;
	if (d >= 0) {
		a->type = cudaMemoryTypeDevice;
		a->devicePointer = (void *)p;
	} else if (pinned_at(p)) {
		a->type = cudaMemoryTypeHost;
		a->devicePointer = a->hostPointer = (void *)p;
	} else {
		a->device = -2;
	}
	return cudaSuccess;
}

cudaError_t cudaMemset(void *p, int byte, size_t bytes)
{
	return cudaMemsetAsync(p, byte, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t stream)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);

	if (is_pageable(p) || !is_whole(p, bytes))
		return report(cudaErrorInvalidValue);
	if (s->device != current)
		return report(cudaErrorInvalidResourceHandle);
	return enqueue(s, s->device, [=] { memset(p, byte, bytes); });
}

/*
 * Pageable memory is read before the call returns, and written before it returns, so the call counts as a call that
 * waits. Other memory, and memory of a captured copy, is accessed later.
 */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);
	cudaError_t error;

	(void)kind;
	if (!width || !height)
		return cudaSuccess;
	if (!is_whole(to, (height - 1) * to_pitch + width) ||
	    !is_whole(from, (height - 1) * from_pitch + width))
		return report(cudaErrorInvalidValue);
	if (!s->capture && (is_pageable(from) || is_pageable(to))) {
		error = disturb();
		if (error)
			return error;
	}
	if (is_pageable(from) && !s->capture) {
		auto kept = std::make_shared<std::vector<char>>((height - 1) * from_pitch + width);

		memcpy(kept->data(), from, kept->size());
		error = enqueue(s, -1, [=] {
			copy_rows((char *)to, to_pitch, kept->data(), from_pitch, width, height);
		});
	} else {
		error = enqueue(s, -1, [=] {
			copy_rows((char *)to, to_pitch, (const char *)from, from_pitch, width,
				  height);
		});
	}
	if (!error && is_pageable(to) && !s->capture)
		run_all(s);
	return error;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	guard held(lock_of_all);

	*stream = new CUstream_st(current, flags != cudaStreamNonBlocking);
	all().streams.push_back(*stream);
	return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	(void)priority;
	return cudaStreamCreateWithFlags(stream, flags);
}

/* Its work still runs. Its capture ends, or becomes invalid. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	guard held(lock_of_all);

	if (!stream)
		return report(cudaErrorInvalidResourceHandle);
	if (capture *c = stream->capture) {
		c->invalid = true;
		if (c->origin == stream)
			leave_capture(c);
	}
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);
	const cudaError_t error = disturb_by_wait(s);

	if (!error)
		run_all(s);
	return error;
}

cudaError_t cudaDeviceSynchronize(void)
{
	guard held(lock_of_all);
	cudaError_t error;

	/* in any mode */
	for (CUstream_st *s : all().streams)
		if (s->capture && s->device == current)
			return invalidate(s->capture, cudaErrorStreamCaptureUnsupported);
	error = disturb();
	if (!error)
		run_device(current);
	return error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);

	if (const cudaError_t error = disturb_by_wait(s))
		return error;
	run_any();
	open_memory(-1);
	/* not an error that cudaGetLastError reports */
	return s->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);

	(void)flags;
	if (event->capture || s->capture)
		return wait_in_capture(s, event);
	return event->at.first ? enqueue(s, -1, {}, {event->at}) : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	(void)flags;
	*event = new CUevent_st(current);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);
	cudaError_t error;

	if (event->device != s->device)
		return report(cudaErrorInvalidResourceHandle);
	error = enqueue(s, -1, {});
	if (error)
		return error;
	event->at = {s->capture ? nullptr : s, s->queued};
	event->capture = s->capture;
	event->after = s->after;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	delete event;
	return cudaSuccess;
}

/* ---- captures and graphs ---- */

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *id)
{
	guard held(lock_of_all);
	const CUstream_st *s = stream_at(stream);

	*id = s->capture ? s->capture->id : 0;
	*status = !s->capture           ? cudaStreamCaptureStatusNone
		  : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
					: cudaStreamCaptureStatusActive;
	if (s == all().defaults[s->device] && implicit_capture(s->device))
		return report(cudaErrorStreamCaptureImplicit);
	return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	unsigned long long id;

	return cudaStreamGetCaptureInfo(stream, status, &id);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	std::swap(*mode, capture_mode);
	return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);

	if (s->capture || s == all().defaults[s->device])
		return report(cudaErrorStreamCaptureUnsupported);
	s->capture = new capture{s, mode, &current, all().captures.size() + 1, {}};
	s->after.clear();
	all().captures.push_back(s->capture);
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	guard held(lock_of_all);
	capture *c = stream_at(stream)->capture;
	cudaError_t error = cudaSuccess;

	*graph = nullptr;
	if (!c)
		return report(cudaErrorInvalidValue);
	if (c->origin != stream_at(stream))
		return invalidate(c, cudaErrorStreamCaptureUnmatched);
	if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != &current)
		return invalidate(c, cudaErrorStreamCaptureWrongThread);
	if (c->invalid)
		error = cudaErrorStreamCaptureInvalidated;
	else if (!is_joined(c))
		error = cudaErrorStreamCaptureUnjoined;
	else
		*graph = new CUgraph_st{c->nodes};
	leave_capture(c);
	return report(error);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	if (nodes)
		return report(cudaErrorNotSupported);
	*n = graph->nodes.size();
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags)
{
	(void)flags;
	*exec = new CUgraphExec_st{graph->nodes};
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

/* Nodes that do not wait for each other are in streams of their own. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	guard held(lock_of_all);
	CUstream_st *s = stream_at(stream);
	std::vector<position> at, before;
	cudaError_t error;

	if (s->capture)
		return report(cudaErrorNotSupported);
	if (exec->last.first)
		before.push_back(exec->last);
	error = enqueue(s, -1, {}, before);
	if (error)
		return error;
	before = {{s, s->queued}};
	for (const node &n : exec->nodes) {
		CUstream_st *branch = branch_for(n, n.device < 0 ? s->device : n.device, at);
		std::vector<position> waits = before;

		for (size_t i : n.after)
			waits.push_back(at[i]);
		branch->queue.push_back({n.run, n.device, waits});
		branch->queued++;
		at.emplace_back(branch, branch->queued);
	}
	error = enqueue(s, -1, {}, at);
	exec->last = {s, s->queued};
	return error;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	delete exec;
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	delete graph;
	return cudaSuccess;
}

/* ---- the driver ---- */

/* For memory that CUDA does not know, the values are 0. */
int cuPointerGetAttributes(unsigned n, const int *which, void **data, unsigned long long address)
{
	guard held(lock_of_all);
	const char *p = (const char *)(uintptr_t)address;
	const int d = device_of(p);
	const auto *a = d < 0 ? nullptr : allocation_at(d, p);
	const auto *pinned = pinned_at(p);

	for (unsigned i = 0; i < n; i++)
		switch (which[i]) {
		case 2: *(unsigned *)data[i] = a ? 2 : pinned ? 1 : 0; break;
		case 8: *(unsigned *)data[i] = 0; break;
		case 9: *(int *)data[i] = a ? d : 0; break;
		case 11:
			*(char **)data[i] = a        ? all().devices[d].arena + a->first
					    : pinned ? pinned->first
						     : nullptr;
			break;
		case 12:
			*(size_t *)data[i] = a ? a->second.bytes : pinned ? pinned->second : 0;
			break;
		default: fail("cuPointerGetAttributes: no attribute %d", which[i]);
		}
	return 0;
}
}
