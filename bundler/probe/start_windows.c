/* The entry point on Windows: the command line cut into words, then the check. */
#include "cudnn_check.h"
#include "platform.h"

__declspec(dllimport) unsigned short *GetCommandLineW(void);
__declspec(dllimport) void ExitProcess(unsigned code);
__declspec(dllimport) int WideCharToMultiByte(unsigned page, unsigned flags, const unsigned short *wide, int size,
                                              char *text, int capacity, const char *standard, int *used);

enum { UTF8 = 65001, MOST_ARGUMENTS = 64, LONGEST_COMMAND = 32768 };

/* Copy a run of backslashes: they count as themselves, except that before a quotation mark each
 * pair is one and an odd one makes the mark a letter. That is every C program's rule. */
static char *take_backslashes(char *at, char **to) {
    size_t count = 0;
    while (at[count] == '\\') count++;
    int before_mark = at[count] == '"';
    for (size_t kept = before_mark ? count / 2 : count; kept > 0; kept--) *(*to)++ = '\\';
    at += count;
    if (before_mark && count % 2) *(*to)++ = *at++;
    return at;
}

/* Write the next word over the line itself, quotation marks removed; return what follows it. */
static char *take_word(char *at, char **word) {
    char *to = at;
    int is_quoted = 0;
    *word = at;
    while (*at && (is_quoted || (*at != ' ' && *at != '\t'))) {
        if (*at == '\\') {
            at = take_backslashes(at, &to);
        } else if (*at == '"') {
            is_quoted = !is_quoted;
            at++;
        } else {
            *to++ = *at++;
        }
    }
    char *next = *at ? at + 1 : at;
    *to = 0;
    return next;
}

void start(void) {
    static char line[3 * LONGEST_COMMAND];
    static char *words[MOST_ARGUMENTS + 1];
    int count = 0;
    WideCharToMultiByte(UTF8, 0, GetCommandLineW(), -1, line, sizeof line, 0, 0);
    char *at = line;
    while (*at && count < MOST_ARGUMENTS) {
        while (*at == ' ' || *at == '\t') at++;
        if (*at) at = take_word(at, &words[count++]);
    }
    int code = cudnn_check_main(count, words);
    platform_wait_before_closing();
    ExitProcess((unsigned)code);
}
