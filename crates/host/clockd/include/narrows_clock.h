/* Reader of the page of `narrows clocks`: mesh time with an error bound.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Header only, for 64-bit Linux with GCC or Clang, C99 or C++.
 *
 *     struct narrows_clock clock;
 *     if (narrows_clock_open("/run/narrows/clock", &clock) != 0)
 *         return errno;
 *     struct narrows_time time;
 *     if (narrows_clock_now(&clock, &time) == NARROWS_CLOCK_OK)
 *         printf("%lld ns +- %lld ns\n", (long long)time.ns, (long long)time.error_ns);
 *     narrows_clock_close(&clock);
 *
 * `ns - error_ns` and `ns + error_ns` bound mesh time at the call, on all members of the mesh. The layout of the page is
 * that of the module `page` of the crate `narrows-clockd`.
 */
#ifndef NARROWS_CLOCK_H
#define NARROWS_CLOCK_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if !defined(__SIZEOF_INT128__)
#error "narrows_clock.h needs __int128"
#endif
#if !defined(CLOCK_MONOTONIC_RAW)
#error "narrows_clock.h needs CLOCK_MONOTONIC_RAW: define _GNU_SOURCE before the first header"
#endif

#define NARROWS_CLOCK_VERSION 1u
#define NARROWS_CLOCK_LENGTH 128u
#define NARROWS_CLOCK_ATTEMPTS 1000000
#define NARROWS_CLOCK_ATTEMPTS_UNTIL_YIELD 256

/* Results of narrows_clock_now(). */
enum narrows_clock_result {
	NARROWS_CLOCK_OK = 0,
	/* Mesh time is not known. */
	NARROWS_CLOCK_UNKNOWN = 1,
	/* The clock of this host has stepped or was suspended, and mesh time is not known yet. */
	NARROWS_CLOCK_DISRUPTED = 2,
	/* The daemon has not updated the page. */
	NARROWS_CLOCK_EXPIRED = 3,
	/* An update did not end: the daemon was killed in it. */
	NARROWS_CLOCK_BUSY = 4,
};

/* The page. */
struct narrows_clock_page {
	char magic[8];
	uint32_t version;
	uint32_t length;
	uint64_t sequence;
	uint64_t status;
	int64_t at;
	int64_t mesh;
	int64_t skew;
	int64_t error;
	int64_t skew_error;
	int64_t valid_until;
	uint64_t disruptions;
	uint64_t reference;
	uint64_t session;
	uint64_t reserved[3];
};

/* An open page. */
struct narrows_clock {
	const struct narrows_clock_page *page;
};

/* Mesh time. */
struct narrows_time {
	/* Mesh time, in nanoseconds. */
	int64_t ns;
	/* Largest error, in nanoseconds. */
	int64_t error_ns;
	/* Disruptions so far: times with different counts may not be comparable. */
	uint64_t disruptions;
};

/* Opens a page. Returns 0, or -1 with errno; EINVAL if the file is not a page of this version. */
static inline int narrows_clock_open(const char *path, struct narrows_clock *clock)
{
	struct stat status;
	void *address;
	const struct narrows_clock_page *page;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	clock->page = NULL;
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(*page)) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	address = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (address == MAP_FAILED)
		return -1;
	page = (const struct narrows_clock_page *)address;
	if (memcmp(page->magic, "NARROWSC", 8) != 0 || page->version != NARROWS_CLOCK_VERSION ||
	    page->length < NARROWS_CLOCK_LENGTH) {
		munmap(address, sizeof(*page));
		errno = EINVAL;
		return -1;
	}
	clock->page = page;
	return 0;
}

/* Closes a page. */
static inline void narrows_clock_close(struct narrows_clock *clock)
{
	if (clock->page != NULL)
		munmap((void *)(uintptr_t)clock->page, sizeof(*clock->page));
	clock->page = NULL;
}

/* Evaluates fields of a page at a reading of CLOCK_MONOTONIC_RAW, in nanoseconds. */
static inline enum narrows_clock_result narrows_clock_evaluate(const struct narrows_clock_page *fields, int64_t now,
							       struct narrows_time *time)
{
	uint64_t age, distance;

	if (fields->status == 2)
		return NARROWS_CLOCK_DISRUPTED;
	if (fields->status != 1)
		return NARROWS_CLOCK_UNKNOWN;
	if (now > fields->valid_until)
		return NARROWS_CLOCK_EXPIRED;
	age = (uint64_t)now - (uint64_t)fields->at;
	distance = (int64_t)age < 0 ? 0 - age : age;
	time->ns = (int64_t)((uint64_t)fields->mesh + age +
			     (uint64_t)(int64_t)(((__int128)(int64_t)age * fields->skew) >> 48));
	time->error_ns = (int64_t)((uint64_t)fields->error +
				   (uint64_t)(int64_t)(((__int128)distance * fields->skew_error) >> 48) + 1);
	time->disruptions = fields->disruptions;
	return NARROWS_CLOCK_OK;
}

/* Reads mesh time. `time` is set if the result is NARROWS_CLOCK_OK. */
static inline enum narrows_clock_result narrows_clock_now(const struct narrows_clock *clock, struct narrows_time *time)
{
	const struct narrows_clock_page *page = clock->page;
	struct narrows_clock_page fields;
	struct timespec now;
	uint64_t before;
	int attempt;

	for (attempt = 1; attempt <= NARROWS_CLOCK_ATTEMPTS; attempt++) {
		before = __atomic_load_n(&page->sequence, __ATOMIC_ACQUIRE);
		if (before & 1) {
			if (attempt % NARROWS_CLOCK_ATTEMPTS_UNTIL_YIELD == 0)
				sched_yield();
			continue;
		}
		fields.status = __atomic_load_n(&page->status, __ATOMIC_RELAXED);
		fields.at = __atomic_load_n(&page->at, __ATOMIC_RELAXED);
		fields.mesh = __atomic_load_n(&page->mesh, __ATOMIC_RELAXED);
		fields.skew = __atomic_load_n(&page->skew, __ATOMIC_RELAXED);
		fields.error = __atomic_load_n(&page->error, __ATOMIC_RELAXED);
		fields.skew_error = __atomic_load_n(&page->skew_error, __ATOMIC_RELAXED);
		fields.valid_until = __atomic_load_n(&page->valid_until, __ATOMIC_RELAXED);
		fields.disruptions = __atomic_load_n(&page->disruptions, __ATOMIC_RELAXED);
		clock_gettime(CLOCK_MONOTONIC_RAW, &now);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&page->sequence, __ATOMIC_RELAXED) == before)
			return narrows_clock_evaluate(&fields, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, time);
	}
	return NARROWS_CLOCK_BUSY;
}

#endif
