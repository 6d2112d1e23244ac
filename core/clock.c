#include "core/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t clock_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

#define DAY_S 86400
#define DAYS_TO_1970 719468 /* from March 1st of the year 0 */
#define DAYS_OF_400_YEARS 146097

/* Computes the date of a day since 1970. Years are counted from March on, so that a leap day is the last of its year. */
static void date_of(int64_t day, int *year, int *month, int *day_of_month)
{
    int64_t from_0 = day + DAYS_TO_1970;
    int in_era = (int)(from_0 % DAYS_OF_400_YEARS);
    int year_in_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    int from_march = (5 * in_year + 2) / 153;

    *day_of_month = in_year - (153 * from_march + 2) / 5 + 1;
    *month = from_march < 10 ? from_march + 3 : from_march - 9;
    *year = (int)(from_0 / DAYS_OF_400_YEARS) * 400 + year_in_era + (*month <= 2);
}

void clock_text(int64_t wall_us, char text[CLOCK_TEXT_SIZE])
{
    int64_t seconds = wall_us / 1000000;
    int in_day = (int)(seconds % DAY_S), year, month, day;

    date_of(seconds / DAY_S, &year, &month, &day);
    snprintf(text, CLOCK_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, month, day, in_day / 3600,
             in_day / 60 % 60, in_day % 60, (int)(wall_us / 1000 % 1000));
}

void clock_sleep_until(int64_t mono_us)
{
    struct timespec t = {.tv_sec = mono_us / 1000000, .tv_nsec = mono_us % 1000000 * 1000};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}
