/* Evaluates a page for the test of the header: at given readings, now, or in a loop for its cost. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "narrows_clock.h"

static int64_t raw(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void print(enum narrows_clock_result result, const struct narrows_time *time)
{
	if (result == NARROWS_CLOCK_OK)
		printf("0 %" PRId64 " %" PRId64 " %" PRIu64 "\n", time->ns, time->error_ns, time->disruptions);
	else
		printf("%d\n", (int)result);
}

int main(int argc, char **argv)
{
	struct narrows_clock clock;
	struct narrows_time time;

	if (argc < 3 || narrows_clock_open(argv[1], &clock) != 0) {
		perror("open");
		return 1;
	}
	if (strcmp(argv[2], "now") == 0) {
		print(narrows_clock_now(&clock, &time), &time);
	} else if (strcmp(argv[2], "cost") == 0) {
		/* The fastest of many measurements, none of which is as long as a time slice. */
		const int measurements = 300, calls = 1000;
		int64_t clock_best = INT64_MAX, read_best = INT64_MAX, sum = 0;
		int i, j;

		for (i = 0; i < measurements; i++) {
			int64_t start = raw(), middle, end;

			for (j = 0; j < calls; j++)
				sum += raw();
			middle = raw();
			for (j = 0; j < calls; j++) {
				if (narrows_clock_now(&clock, &time) != NARROWS_CLOCK_OK)
					return 2;
				sum += time.ns;
			}
			end = raw();
			if (middle - start < clock_best)
				clock_best = middle - start;
			if (end - middle < read_best)
				read_best = end - middle;
		}
		printf("%f %f %d\n", (double)clock_best / calls, (double)read_best / calls, (int)(sum & 1));
	} else {
		int i;

		for (i = 2; i < argc; i++)
			print(narrows_clock_evaluate(clock.page, strtoll(argv[i], NULL, 10), &time), &time);
	}
	narrows_clock_close(&clock);
	return 0;
}
