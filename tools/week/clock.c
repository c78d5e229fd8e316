/* Preloaded into every process of the week: the time of day is the machine's, moved by the seconds
   that the file WEEK_CLOCK holds. Clocks that only measure durations are left alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *shift;

__attribute__((constructor)) static void begin(void) {
    const char *place = getenv("WEEK_CLOCK");
    int file = place ? open(place, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) shift = page;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *shift;
    return failed;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict place, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    place->tv_sec = now.tv_sec;
    place->tv_usec = now.tv_nsec / 1000;
    return 0;
}
