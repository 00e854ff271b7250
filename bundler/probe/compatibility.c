/* Whether the driver and the GPU are enough for this cuDNN: asked once the library has said what
 * it is, answered from NVIDIA's tables. What is not in them is not refused by them. */
#include "compatibility_table.h"
#include "stages.h"

#define NOT_IN_TABLE "not in the table"

/* Open the object that a stage has closed, for more members. */
static void reopen(Text *facts) {
    if (facts->size) facts->bytes[--facts->size] = 0;
}

/* cuDNN counts versions up to 8 in another way than later ones: 8905 and 90100. */
static int comparable(unsigned long long version) {
    return (int)(version >= 90000 || version < 1000 ? version : version / 1000 * 10000 + version % 1000);
}

/* Such as "cuDNN 8.9.5 for CUDA 11". */
static const char *this_cudnn(const Check *check) {
    STATIC_TEXT(words, 100);
    int version = comparable(check->cudnn_version);
    text_clear(&words);
    text_format(&words, "this cuDNN %d.%d.%d for CUDA %u", version / 10000, version / 100 % 100, version % 100, check->cudart_version / 1000);
    return words.bytes;
}

static void capability_member(Text *facts, const char *key, int capability) {
    STATIC_TEXT(words, 24);
    text_clear(&words);
    text_format(&words, "%d.%d", capability / 10, capability % 10);
    json_member(facts, key, words.bytes);
}

/* CUDA runs on every driver of its own major version or a later one; before 11 the minor version
 * counted as well, which the table knows. */
void judge_driver(Check *check) {
    Stage *stage = &check->report->stages[DRIVER];
    int wanted = (int)check->cudart_version, least = wanted / 1000 * 1000;
    size_t row = 0, rows = sizeof DRIVERS / sizeof *DRIVERS;
    while (row < rows && (wanted < DRIVERS[row].from || wanted >= DRIVERS[row].below)) row++;
    if (!wanted) return;
    if (row < rows) least = DRIVERS[row].driver_cuda;
    reopen(&stage->facts);
    json_member(&stage->facts, "needs_cuda", row < rows ? DRIVERS[row].driver_cuda_words : NOT_IN_TABLE);
    json_member(&stage->facts, "needs_driver", row < rows ? DRIVERS[row].driver : NOT_IN_TABLE);
    json_close(&stage->facts, '}');
    if (!check->cuda_version || stage->status != PASSED) return;
    int has_major = check->cuda_version / 1000, has_minor = check->cuda_version % 1000 / 10;
    if (check->cuda_version >= least) {
        if (row == rows) text_format(&stage->reason, "CUDA %d is not in this program's table: its major version alone was compared", wanted / 1000);
        return;
    }
    stage_failed(stage);
    text_format(&stage->reason, "the driver is too old: it supports CUDA %d.%d at most, and %s needs ", has_major, has_minor, this_cudnn(check));
    if (row < rows) {
        text_format(&stage->reason, "CUDA %s, driver %s or later", DRIVERS[row].driver_cuda_words, DRIVERS[row].driver);
        text_format(&stage->remedy, "update the NVIDIA display driver to %s or a newer one", DRIVERS[row].driver);
    } else {
        text_format(&stage->reason, "CUDA %d", wanted / 1000);
        text_add(&stage->remedy, "install a newer NVIDIA driver");
    }
    text_format(&stage->remedy, ", or use a cuDNN for CUDA %d", has_major);
}

/* The newest cuDNN of the table that has code for this GPU. */
static void add_fitting_cudnn(Text *remedy, int capability) {
    size_t found = sizeof DEVICES / sizeof *DEVICES;
    for (size_t row = 0; row < sizeof DEVICES / sizeof *DEVICES; row++) {
        int is_in = capability >= DEVICES[row].oldest && (!DEVICES[row].newest || capability / 10 <= DEVICES[row].newest / 10);
        if (is_in && (found == sizeof DEVICES / sizeof *DEVICES || DEVICES[row].through >= DEVICES[found].through)) found = row;
    }
    if (found == sizeof DEVICES / sizeof *DEVICES) text_add(remedy, "no cuDNN of this program's table supports this GPU");
    else text_format(remedy, "use a cuDNN up to %s for CUDA %d, which still supports it", DEVICES[found].version, DEVICES[found].cuda);
}

/* From 9.8 on cuDNN itself says which GPUs it was made for: 1210 is compute capability 12.1. A
 * GPU runs code that was made for another one of the same major version. */
void judge_device(Check *check, unsigned long long newest_asked) {
    Stage *stage = &check->report->stages[DEVICE];
    int version = comparable(check->cudnn_version), capability = check->compute_capability;
    int oldest = 0, newest = (int)(newest_asked / 10);
    size_t row = 0, rows = sizeof DEVICES / sizeof *DEVICES;
    if (!check->has_device) return;
    while (row < rows && (DEVICES[row].cuda != (int)(check->cudart_version / 1000) || version < DEVICES[row].from || version > DEVICES[row].through)) row++;
    if (row < rows) oldest = DEVICES[row].oldest;
    if (row < rows && !newest) newest = DEVICES[row].newest;
    reopen(&stage->facts);
    if (oldest) capability_member(&stage->facts, "oldest_supported", oldest);
    else json_member(&stage->facts, "oldest_supported", NOT_IN_TABLE);
    if (newest) capability_member(&stage->facts, "newest_supported", newest);
    else json_member(&stage->facts, "newest_supported", row < rows ? "no limit" : NOT_IN_TABLE);
    json_close(&stage->facts, '}');
    if (capability < oldest) {
        stage_failed(stage);
        text_format(&stage->reason, "%s supports GPUs from compute capability %d.%d on, and this one has %d.%d", this_cudnn(check), oldest / 10,
                    oldest % 10, capability / 10, capability % 10);
        add_fitting_cudnn(&stage->remedy, capability);
    } else if (newest && capability / 10 > newest / 10) {
        stage_failed(stage);
        text_format(&stage->reason, "%s knows GPUs up to compute capability %d.%d, and this one has %d.%d", this_cudnn(check), newest / 10,
                    newest % 10, capability / 10, capability % 10);
        text_add(&stage->remedy, "use a newer cuDNN");
    }
}
