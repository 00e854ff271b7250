#include "deaths.h"

#include "stages.h"

#define NOT_LOCATED "Could not locate "
#define NOT_LOADED "Could not load library "
#define NO_SYMBOL "Could not load symbol "
#define NO_HANDLE "Cannot load symbol "
#define NO_DEPENDENCY "Successfully loaded "

static const char *const TELLING[] = {NOT_LOCATED, NOT_LOADED, NO_SYMBOL, NO_DEPENDENCY, NO_HANDLE};

enum { FAST_FAIL = (int)0xC0000409, ACCESS_VIOLATION = (int)0xC0000005, ABORTED = 6, KILLED = 9, CRASHED = 11 };

int line_is_telling(const char *line) {
    for (size_t at = 0; at < sizeof TELLING / sizeof *TELLING; at++)
        if (text_find(line, TELLING[at])) return 1;
    return 0;
}

/* The word after a phrase: a file name or a function's name, without the full stop behind it. */
static const char *word_after(const char *line, const char *phrase) {
    STATIC_TEXT(word, 300);
    const char *at = text_find(line, phrase);
    text_clear(&word);
    if (!at) return word.bytes;
    at += text_length(phrase);
    size_t size = 0;
    while (at[size] && at[size] != ' ' && at[size] != '\r' && at[size] != '\n') size++;
    while (size && (at[size - 1] == '.' || at[size - 1] == ',')) size--;
    text_add_bytes(&word, at, size);
    return word.bytes;
}

static void add_companion_remedy(Text *remedy, const char *name) {
    if (text_begins_ignoring_case(name, "cublas") || text_begins_ignoring_case(name, "libcublas"))
        text_format(remedy, "put %s and its twin (cublas and cublasLt belong together) beside the cuDNN libraries, or the CUDA "
                    "toolkit's folder that holds them on %s", name, SEARCH_PATH);
    else if (text_begins_ignoring_case(name, "nvrtc") || text_begins_ignoring_case(name, "libnvrtc"))
        text_format(remedy, "put %s and its nvrtc-builtins beside the cuDNN libraries, or the CUDA toolkit's folder on %s", name, SEARCH_PATH);
    else if (text_begins_ignoring_case(name, "zlib") || text_begins_ignoring_case(name, "libz"))
        text_format(remedy, "put a 64-bit %s beside the cuDNN libraries; this cuDNN compresses its kernels with it", name);
    else if (text_begins_ignoring_case(name, CUDNN_PREFIX))
        text_format(remedy, "copy the whole set of cuDNN libraries, not the main one alone, into the folder of this program; if %s "
                    "was there before, look into the antivirus program's quarantine", name);
    else text_format(remedy, "install what provides %s", name);
}

static void explain_not_located(Stage *stage, const char *name) {
    text_format(&stage->reason, "cuDNN could not find %s", name);
    add_companion_remedy(&stage->remedy, name);
}

/* Linux says what is wrong with a library in the loader's own words, behind "Error: ". */
static void explain_not_loaded(Stage *stage, const char *line) {
    const char *name = word_after(line, NOT_LOADED);
    const char *code = text_find(line, "Error code "), *words = text_find(line, "Error: ");
    if (words && text_find(words, "cannot open shared object file")) {
        words += text_length("Error: ");
        Text missing = {(char[300]){0}, 0, 300, 0};
        for (size_t size = 0; words[size] && words[size] != ':'; size++) text_add_bytes(&missing, words + size, 1);
        text_format(&stage->reason, "cuDNN could not open %s, because %s was not found", name, missing.bytes);
        add_companion_remedy(&stage->remedy, missing.bytes);
        return;
    }
    text_format(&stage->reason, "cuDNN could not load %s", name);
    if (code && text_begins(code, "Error code 193")) {
        text_add(&stage->reason, ", which is damaged or built for another processor (error 193)");
        text_add(&stage->remedy, "compare its SHA-256 with the published one and copy it again from the archive");
    } else if (code && text_begins(code, "Error code 1455")) {
        text_add(&stage->reason, ", because the page file is too small for it (error 1455)");
        text_add(&stage->remedy, "make the page file larger, or run fewer processes that use cuDNN at once");
    } else if (code && text_begins(code, "Error code 127")) {
        text_add(&stage->reason, ", because a library that it imports is of another version (error 127)");
        text_add(&stage->remedy, "replace every cuDNN library by those of one archive");
    } else {
        if (code) text_format(&stage->reason, " (error %s)", word_after(line, "Error code "));
        text_add(&stage->remedy, "compare its SHA-256 with the published one, and check that a virus scanner does not block it");
    }
}

void explain_line(Stage *stage, const char *line) {
    stage_failed(stage);
    if (text_find(line, NOT_LOCATED)) {
        explain_not_located(stage, word_after(line, NOT_LOCATED));
    } else if (text_find(line, NOT_LOADED)) {
        explain_not_loaded(stage, line);
    } else if (text_find(line, NO_DEPENDENCY)) {
        text_format(&stage->reason, "%s is there, but a library that it imports is not", word_after(line, NO_DEPENDENCY));
        text_add(&stage->remedy, "copy the whole set of cuDNN libraries of one archive, not some of them, into the folder of this program");
    } else if (text_find(line, NO_SYMBOL)) {
        text_format(&stage->reason, "a cuDNN library lacks %s, so it is of another version", word_after(line, NO_SYMBOL));
        text_add(&stage->remedy, "replace every cuDNN library by those of one archive");
    } else {
        text_format(&stage->reason, "the cuDNN library that provides %s was not found", word_after(line, NO_HANDLE));
        text_add(&stage->remedy, "copy the whole set of cuDNN libraries of one archive into the folder of this program");
    }
}

static void add_end(Text *reason, const ChildEnd *end) {
    if (end->is_signal) text_format(reason, "the process was ended by signal %u", (unsigned long long)end->code);
    else if (end->code == (unsigned)FAST_FAIL) text_add(reason, "the process ended itself (0xC0000409)");
    else if (end->code == (unsigned)ACCESS_VIOLATION) text_add(reason, "the process crashed (0xC0000005)");
    else if (end->code > 255) text_format(reason, "the process was ended with 0x%x", end->code);
    else text_format(reason, "the process ended with exit code %u", (unsigned long long)end->code);
}

static int is_crash(const ChildEnd *end) {
    return end->is_signal ? end->code != ABORTED && end->code != KILLED : end->code == (unsigned)ACCESS_VIOLATION;
}

static void explain_timeout(Stage *stage, const char *last_line, unsigned seconds) {
    stage_failed(stage);
    text_format(&stage->reason, "this stage had not come to an end when the %u seconds of the check were over", (unsigned long long)seconds);
    if (last_line && *last_line) text_format(&stage->reason, "; the last that was said is \"%s\"", last_line);
    text_add(&stage->remedy, "run nvidia-smi to see whether the GPU answers, and the check once more with --log FILE to see where cuDNN "
             "waits; give it longer with --timeout SECONDS where a virus scanner or a network drive is slow");
}

void explain_end(Stage *stage, const char *last_line, const ChildEnd *end, unsigned seconds) {
    if (end->is_timeout) {
        explain_timeout(stage, last_line, seconds);
        return;
    }
    if (last_line && line_is_telling(last_line)) {
        explain_line(stage, last_line);
        text_add(&stage->reason, ", and ");
        add_end(&stage->reason, end);
        return;
    }
    stage_failed(stage);
    add_end(&stage->reason, end);
    if (last_line && *last_line) text_format(&stage->reason, " after it had said \"%s\"", last_line);
    if (is_crash(end))
        text_add(&stage->remedy, "replace every cuDNN library by those of one archive; if it crashes again, install a newer driver");
    else text_add(&stage->remedy, "run the check once more with --log FILE, and read what cuDNN did last");
}
