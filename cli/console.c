/* console.c: see console.h. The library never prints: all messages on standard error go through this file. */
#include "console.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_WIDTH 80

static volatile sig_atomic_t interrupted;

cli_words cli_count(int64_t n)
{
    char digits[32];
    cli_words words = {""};
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        int left = length - i;
        if (i > 0 && left % 3 == 0 && digits[i - 1] != '-')
            words.text[used++] = ',';
        words.text[used++] = digits[i];
    }
    words.text[used] = 0;
    return words;
}

cli_words cli_plural(int64_t n, const char *one, const char *many)
{
    cli_words words;
    snprintf(words.text, sizeof words.text, "%.30s %.30s", cli_count(n).text, n == 1 ? one : many);
    return words;
}

cli_words cli_rate(double per_second)
{
    cli_words words;
    if (per_second >= 9.995e6)
        snprintf(words.text, sizeof words.text, "%.0fM", per_second / 1e6);
    else if (per_second >= 999.5e3)
        snprintf(words.text, sizeof words.text, "%.1fM", per_second / 1e6);
    else if (per_second >= 9995)
        snprintf(words.text, sizeof words.text, "%.0fk", per_second / 1e3);
    else if (per_second >= 999.5)
        snprintf(words.text, sizeof words.text, "%.1fk", per_second / 1e3);
    else
        snprintf(words.text, sizeof words.text, "%.0f", per_second);
    return words;
}

cli_words cli_bytes(double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    cli_words words;
    int unit = 0;
    while (bytes >= 999.5 && unit < 4) {
        bytes /= 1000;
        unit++;
    }
    snprintf(words.text, sizeof words.text, unit == 0 || bytes >= 99.95 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return words;
}

cli_words cli_percent(double fraction, int decimals)
{
    cli_words words;
    /* No "-0.0 %". */
    if (fabs(fraction) * 100 < 0.5 * pow(10, -decimals))
        fraction = 0;
    if (isnan(fraction))
        snprintf(words.text, sizeof words.text, "-");
    else
        snprintf(words.text, sizeof words.text, "%.*f %%", decimals, 100 * fraction);
    return words;
}

cli_words cli_seconds(double seconds)
{
    cli_words words;
    long whole = seconds < 1e9 ? lround(seconds) : 0;
    if (seconds < 1)
        snprintf(words.text, sizeof words.text, "%.2f s", seconds);
    else if (seconds < 9.95)
        snprintf(words.text, sizeof words.text, "%.1f s", seconds);
    else if (whole < 60)
        snprintf(words.text, sizeof words.text, "%ld s", whole);
    else if (whole < 3600)
        snprintf(words.text, sizeof words.text, "%ld min %ld s", whole / 60, whole % 60);
    else
        snprintf(words.text, sizeof words.text, "%ld h %ld min", whole / 3600, whole / 60 % 60);
    return words;
}

cli_words cli_duration(double seconds)
{
    cli_words words;
    lapse_duration_format(seconds, words.text, sizeof words.text);
    return words;
}

static bool times_are_numbers;

void cli_times_of(const lapse_dataset *dataset)
{
    const char *name, *value;
    for (int i = 0; lapse_dataset_property(dataset, i, &name, &value); i++)
        times_are_numbers |= strcmp(name, "time.unit") == 0 && strcmp(value, "relative numbers") == 0;
}

cli_words cli_timestamp(double time)
{
    cli_words words;
    if (times_are_numbers)
        snprintf(words.text, sizeof words.text, "%.12g", time);
    else
        lapse_time_format(time, words.text, sizeof words.text);
    return words;
}

static void say(const char *format, va_list arguments)
{
    char line[2048];
    vsnprintf(line, sizeof line, format, arguments);
    fputs("lapse: ", stderr);
    cli_text_print(stderr, line);
    fputc('\n', stderr);
}

void cli_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

int cli_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

int cli_error(const lapse_error *error)
{
    char location[320] = "";
    if (error->file[0] && error->line > 0 && error->column > 0)
        snprintf(location, sizeof location, "%s:%lld:%lld: ", error->file, (long long)error->line,
                 (long long)error->column);
    else if (error->file[0] && error->line > 0)
        snprintf(location, sizeof location, "%s:%lld: ", error->file, (long long)error->line);
    else if (error->file[0])
        snprintf(location, sizeof location, "%s: ", error->file);
    cli_note("%s%s", location, error->message);
    /* A usage error about a file is a fault of the file, not of the command line. */
    return error->status == LAPSE_ERROR_USAGE && !error->file[0] ? CLI_USAGE : CLI_FAILED;
}

void cli_text_print(FILE *file, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        fputc(*c < 32 || *c == 127 ? '?' : *c, file);
}

int cli_text_width(const char *text)
{
    int width = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        width += (*c & 0xC0) != 0x80;
    return width;
}

void cli_paragraph(FILE *file, const char *text, int used, int indent, int width)
{
    bool begun = false;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (begun && used + 1 + length > width) {
            fprintf(file, "\n%*s", indent, "");
            used = indent;
            begun = false;
        }
        fprintf(file, "%s%.*s", begun ? " " : "", length, text);
        used += length + begun;
        begun = true;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', file);
}

int cli_width(FILE *file)
{
    struct winsize size;
    int handle = fileno(file);
    if (isatty(handle) && ioctl(handle, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return DEFAULT_WIDTH;
}

double cli_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void (*cli_on_terminate)(void);

static void note_signal(int number)
{
    interrupted = 1;
    if (number == SIGTERM && cli_on_terminate)
        cli_on_terminate();
}

static void on_signals(void (*handler)(int), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void cli_interrupt_watch(void)
{
    /* SA_RESETHAND restores the default action, so a second signal ends the process. */
    on_signals(note_signal, SA_RESETHAND | SA_RESTART);
}

void cli_interrupt_unwatch(void)
{
    on_signals(SIG_DFL, 0);
}

bool cli_interrupted(void)
{
    return interrupted != 0;
}
