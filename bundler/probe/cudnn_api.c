#include "cudnn_api.h"

typedef void (*AnyFunction)(void);

static const struct {
    const char *words, *find, *workspace, *run;
} DIRECTIONS[] = {
#define DIRECTION_NAMES(id, words, find, size, run) {words, find, size, run},
    CUDNN_DIRECTIONS(DIRECTION_NAMES)};

const char *direction_name(Direction direction) { return DIRECTIONS[direction].words; }

const char *cudnn_find(CudnnApi *api, Library library) {
    static const char *const symbols[] = {
#define SYMBOL(member, symbol, parameters) symbol,
        CUDNN_FUNCTIONS(SYMBOL)};
    AnyFunction *members = (AnyFunction *)api;
    for (size_t at = 0; at < sizeof symbols / sizeof *symbols; at++) {
        members[at] = (AnyFunction)platform_symbol(library, symbols[at]);
        if (!members[at]) return symbols[at];
    }
    api->error_text = (const char *(*)(int))platform_symbol(library, "cudnnGetErrorString");
    if (!api->error_text) return "cudnnGetErrorString";
    for (int at = 0; at < DIRECTION_COUNT; at++) {
        DirectionApi *direction = &api->directions[at];
        direction->find = (FindAlgorithm)platform_symbol(library, DIRECTIONS[at].find);
        direction->workspace = (WorkspaceSize)platform_symbol(library, DIRECTIONS[at].workspace);
        direction->run = (Convolve)platform_symbol(library, DIRECTIONS[at].run);
        if (!direction->find || !direction->workspace || !direction->run) return DIRECTIONS[at].run;
    }
    return 0;
}
