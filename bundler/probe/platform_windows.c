/* The Windows side, without a C library: kernel32 only, its wide functions only. */
#include "platform.h"
#include "text.h"

#define IMPORT __declspec(dllimport)
typedef unsigned short Wide;
typedef void *Handle;

IMPORT Handle LoadLibraryW(const Wide *name);
IMPORT Handle LoadLibraryExW(const Wide *name, Handle reserved, unsigned flags);
IMPORT void *GetProcAddress(Handle module, const char *name);
IMPORT Handle GetModuleHandleW(const Wide *name);
IMPORT unsigned GetModuleFileNameW(Handle module, Wide *path, unsigned capacity);
IMPORT int K32EnumProcessModules(Handle process, Handle *modules, unsigned bytes, unsigned *needed);
IMPORT Handle FindResourceW(Handle module, const Wide *name, const Wide *type);
IMPORT unsigned SizeofResource(Handle module, Handle resource);
IMPORT Handle LoadResource(Handle module, Handle resource);
IMPORT void *LockResource(Handle resource);
IMPORT unsigned GetLastError(void);
IMPORT unsigned GetFullPathNameW(const Wide *path, unsigned capacity, Wide *full, Wide **name);
IMPORT unsigned GetFileAttributesW(const Wide *path);
IMPORT Handle FindFirstFileW(const Wide *pattern, void *found);
IMPORT int FindNextFileW(Handle search, void *found);
IMPORT int FindClose(Handle search);
IMPORT unsigned GetEnvironmentVariableW(const Wide *name, Wide *value, unsigned capacity);
IMPORT int SetEnvironmentVariableW(const Wide *name, const Wide *value);
IMPORT Handle GetStdHandle(unsigned which);
IMPORT int WriteFile(Handle file, const void *bytes, unsigned size, unsigned *written, void *overlapped);
IMPORT int ReadFile(Handle file, void *bytes, unsigned capacity, unsigned *size, void *overlapped);
IMPORT int CreatePipe(Handle *reading, Handle *writing, void *attributes, unsigned size);
IMPORT int PeekNamedPipe(Handle pipe, void *bytes, unsigned capacity, unsigned *size, unsigned *available, unsigned *left);
IMPORT int SetHandleInformation(Handle handle, unsigned mask, unsigned flags);
IMPORT int CloseHandle(Handle handle);
IMPORT int CreateProcessW(const Wide *program, Wide *command, void *process_security, void *thread_security,
                          int inherit, unsigned flags, void *environment, const Wide *folder, void *startup,
                          void *process);
IMPORT unsigned WaitForSingleObject(Handle object, unsigned milliseconds);
IMPORT int TerminateProcess(Handle process, unsigned code);
IMPORT unsigned long long GetTickCount64(void);
IMPORT int GetExitCodeProcess(Handle process, unsigned *code);
IMPORT Handle GetCurrentProcess(void);
IMPORT unsigned SetErrorMode(unsigned mode);
IMPORT int GetConsoleMode(Handle console, unsigned *mode);
IMPORT unsigned GetConsoleProcessList(unsigned *processes, unsigned capacity);
IMPORT int MultiByteToWideChar(unsigned page, unsigned flags, const char *text, int size, Wide *wide, int capacity);
IMPORT int WideCharToMultiByte(unsigned page, unsigned flags, const Wide *wide, int size, char *text, int capacity,
                               const char *standard, int *used);
IMPORT Wide *GetCommandLineW(void);
IMPORT Handle GetProcessHeap(void);
IMPORT void *HeapAlloc(Handle heap, unsigned flags, size_t size);
IMPORT int HeapFree(Handle heap, unsigned flags, void *memory);

enum {
    UTF8 = 65001,
    SEARCH_OWN_FOLDER_AND_DEFAULTS = 0x1100,
    SEARCH_SYSTEM32 = 0x800,
    NO_ATTRIBUTES = -1,
    DIRECTORY = 0x10,
    INHERIT = 1,
    USE_HANDLES = 0x100,
    NO_BOXES = 0x8003,
    MOST_MODULES = 1024,
    MOST_ARGUMENTS = 64,
    LONGEST_COMMAND = 32768,
    PIPE_BYTES = 1 << 18,
    LOOK_EVERY_MS = 20,
    VERSION_SIGNATURE = (int)0xFEEF04BD,
};

/* What the compiler itself may call. */
void *memset(void *to, int value, size_t size) {
    for (volatile char *at = to; size--;) *at++ = (char)value;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    volatile char *at = to;
    for (const char *source = from; size--;) *at++ = *source++;
    return to;
}

static const Wide *widen(const char *text) {
    static Wide wide[LONGEST_PATH];
    wide[0] = 0;
    MultiByteToWideChar(UTF8, 0, text, -1, wide, LONGEST_PATH);
    return wide;
}

static void narrow(const Wide *wide, char *text, size_t capacity) {
    text[0] = 0;
    WideCharToMultiByte(UTF8, 0, wide, -1, text, (int)capacity, 0, 0);
}

Library platform_open(const char *name) { return LoadLibraryW(widen(name)); }

Library platform_open_path(const char *path) {
    return LoadLibraryExW(widen(path), 0, SEARCH_OWN_FOLDER_AND_DEFAULTS);
}

Library platform_open_driver(void) { return LoadLibraryExW(u"nvcuda.dll", 0, SEARCH_SYSTEM32); }

static void module_path(Handle module, char *path, size_t capacity) {
    static Wide wide[LONGEST_PATH];
    wide[0] = 0;
    GetModuleFileNameW(module, wide, LONGEST_PATH);
    narrow(wide, path, capacity);
}

int platform_loaded(const char *name, char *path, size_t capacity) {
    Handle module = GetModuleHandleW(widen(name));
    if (module) module_path(module, path, capacity);
    return module != 0;
}

void *platform_symbol(Library library, const char *name) { return GetProcAddress(library, name); }

/* https://learn.microsoft.com/windows/win32/debug/system-error-codes */
static const char *meaning_of(unsigned error) {
    switch (error) {
        case 5: return "access is denied";
        case 126: return "it, or a library that it imports, was not found";
        case 127: return "a function that it imports is missing: a library of another version was loaded";
        case 193: return "it is damaged, or built for another processor";
        case 225: return "it was blocked as a virus: see the quarantine of the antivirus program";
        case 1114: return "its start-up code failed";
        case 1455: return "the page file is too small for it";
        default: return "see the list of Windows' system error codes";
    }
}

const char *platform_open_error(void) {
    STATIC_TEXT(text, 200);
    unsigned error = GetLastError();
    text_clear(&text);
    text_format(&text, "error %u: %s", (unsigned long long)error, meaning_of(error));
    return text.bytes;
}

const char *platform_own_folder(void) {
    static char folder[LONGEST_PATH];
    module_path(0, folder, sizeof folder);
    for (size_t at = text_length(folder); at > 0; at--) {
        if (folder[at] != '\\') continue;
        folder[at] = 0;
        break;
    }
    return folder;
}

void platform_make_absolute(const char *path, char *absolute, size_t capacity) {
    static Wide wide[LONGEST_PATH];
    wide[0] = 0;
    GetFullPathNameW(widen(path), LONGEST_PATH, wide, 0);
    narrow(wide, absolute, capacity);
    size_t size = text_length(absolute);
    if (size > 3 && absolute[size - 1] == '\\') absolute[size - 1] = 0;
}

int platform_file_exists(const char *path) {
    unsigned attributes = GetFileAttributesW(widen(path));
    return attributes != (unsigned)NO_ATTRIBUTES && !(attributes & DIRECTORY);
}

void platform_each_file(const char *folder, NameSink sink, void *context) {
    struct {
        unsigned attributes, times[6], sizes[2], reserved[2];
        Wide name[260], short_name[14];
        unsigned more[4];
    } found;
    static char pattern[LONGEST_PATH], name[LONGEST_PATH];
    Text text = {pattern, 0, sizeof pattern, 0};
    text_format(&text, "%s\\*", folder);
    Handle search = FindFirstFileW(widen(pattern), &found);
    if (search == (Handle)-1) return;
    do {
        narrow(found.name, name, sizeof name);
        if (!(found.attributes & DIRECTORY)) sink(context, name);
    } while (FindNextFileW(search, &found));
    FindClose(search);
}

void platform_each_module(ModuleSink sink, void *context) {
    static Handle modules[MOST_MODULES];
    static char path[LONGEST_PATH];
    unsigned needed = 0;
    if (!K32EnumProcessModules(GetCurrentProcess(), modules, sizeof modules, &needed)) return;
    unsigned count = needed / sizeof *modules < MOST_MODULES ? needed / sizeof *modules : MOST_MODULES;
    for (unsigned at = 0; at < count; at++) {
        module_path(modules[at], path, sizeof path);
        sink(context, path, modules[at]);
    }
}

/* https://learn.microsoft.com/windows/win32/api/verrsrc/ns-verrsrc-vs_fixedfileinfo */
int platform_file_version(Library module, unsigned numbers[4]) {
    Handle resource = FindResourceW(module, (const Wide *)1, (const Wide *)16);
    if (!resource) return 0;
    const unsigned *at = LockResource(LoadResource(module, resource));
    const unsigned *end = at ? at + SizeofResource(module, resource) / sizeof *at : at;
    for (; at && at + 4 <= end; at++) {
        if (*at != (unsigned)VERSION_SIGNATURE) continue;
        for (int which = 0; which < 4; which++) numbers[which] = at[2 + which / 2] >> (which % 2 ? 0 : 16) & 0xFFFF;
        return 1;
    }
    return 0;
}

const char *platform_variable(const char *name) {
    static Wide wide[LONGEST_COMMAND];
    static char value[LONGEST_COMMAND];
    wide[0] = 0;
    if (GetEnvironmentVariableW(widen(name), wide, LONGEST_COMMAND) >= LONGEST_COMMAND) wide[0] = 0;
    narrow(wide, value, sizeof value);
    return value;
}

void platform_set_variable(const char *name, const char *value) {
    static Wide wide_value[LONGEST_PATH];
    MultiByteToWideChar(UTF8, 0, value, -1, wide_value, LONGEST_PATH);
    SetEnvironmentVariableW(widen(name), wide_value);
}

static Handle standard_stream(int stream) { return GetStdHandle(stream == STANDARD_ERROR ? (unsigned)-12 : (unsigned)-11); }

void platform_write(int stream, const char *bytes, size_t size) {
    while (size) {
        unsigned written = 0;
        if (!WriteFile(standard_stream(stream), bytes, (unsigned)size, &written, 0) || !written) return;
        bytes += written;
        size -= written;
    }
}

/* STARTUPINFOW and PROCESS_INFORMATION as the 64-bit ABI lays them out. */
typedef struct {
    unsigned size;
    void *reserved[3];
    unsigned placement[7];
    unsigned flags;
    unsigned short show, reserved_size;
    void *reserved_bytes;
    Handle input, output, error;
} Startup;

typedef struct {
    Handle process, thread;
    unsigned process_id, thread_id;
} Process;

static int start_again(const char *argument, Handle output, Process *process) {
    static Wide program[LONGEST_PATH], command[LONGEST_COMMAND];
    Startup startup = {.size = sizeof startup, .flags = USE_HANDLES};
    size_t at = 0;
    for (const Wide *from = GetCommandLineW(); *from && at < LONGEST_COMMAND - LONGEST_PATH; from++) command[at++] = *from;
    command[at++] = ' ';
    for (const Wide *from = widen(argument); *from; from++) command[at++] = *from;
    command[at] = 0;
    GetModuleFileNameW(0, program, LONGEST_PATH);
    startup.input = GetStdHandle((unsigned)-10);
    startup.output = startup.error = output;
    return CreateProcessW(program, command, 0, 0, 1, 0, 0, 0, &startup, process);
}

/* Hand on what the child writes until it has ended; 0 when it takes too long. A pipe cannot be
 * waited for together with a time, so it is looked into. */
static int listen_until(Handle reading, Handle process, unsigned long long end, ByteSink sink, void *context) {
    static char bytes[4096];
    unsigned size, available;
    for (int has_ended = 0;;) {
        while (PeekNamedPipe(reading, 0, 0, 0, &available, 0) && available && ReadFile(reading, bytes, sizeof bytes, &size, 0)) sink(context, bytes, size);
        if (has_ended) return 1;
        if (GetTickCount64() >= end) return 0;
        has_ended = WaitForSingleObject(process, LOOK_EVERY_MS) == 0;
    }
}

ChildEnd platform_run_again(const char *argument, char **arguments, unsigned seconds, ByteSink sink, void *context) {
    (void)arguments;
    Handle reading, writing;
    Process process = {0};
    ChildEnd end = {0};
    if (!CreatePipe(&reading, &writing, 0, PIPE_BYTES)) return end;
    SetHandleInformation(writing, INHERIT, INHERIT);
    end.is_started = start_again(argument, writing, &process);
    CloseHandle(writing);
    if (end.is_started && !listen_until(reading, process.process, GetTickCount64() + seconds * 1000ull, sink, context)) {
        end.is_timeout = 1;
        TerminateProcess(process.process, 1);
    }
    CloseHandle(reading);
    if (!end.is_started) return end;
    WaitForSingleObject(process.process, ~0u);
    GetExitCodeProcess(process.process, &end.code);
    CloseHandle(process.thread);
    CloseHandle(process.process);
    return end;
}

void platform_fail_silently(void) { SetErrorMode(NO_BOXES); }

void platform_wait_before_closing(void) {
    unsigned mode, processes[2], size;
    Handle input = GetStdHandle((unsigned)-10);
    char key[2];
    if (GetConsoleProcessList(processes, 2) != 1) return;
    if (!GetConsoleMode(input, &mode) || !GetConsoleMode(standard_stream(STANDARD_ERROR), &mode)) return;
    const char *words = "\nPress Enter to close this window.";
    platform_write(STANDARD_ERROR, words, text_length(words));
    ReadFile(input, key, sizeof key, &size, 0);
}

void *platform_allocate(size_t size) { return HeapAlloc(GetProcessHeap(), 0, size); }

void platform_release(void *memory) { HeapFree(GetProcessHeap(), 0, memory); }
