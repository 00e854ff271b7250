/* One convolution on the GPU: set up, run, taken down, and what its errors mean. */
#include "convolution.h"

enum { MOST_ALGORITHMS = 8, POISON = 0xFF /* all bits set are no number in every floating-point form */ };

size_t shape_inputs(const Shape *shape) { return (size_t)shape->n * shape->c * shape->h * shape->w; }
size_t shape_filters(const Shape *shape) { return (size_t)shape->k * shape->c * shape->size * shape->size; }
size_t shape_outputs(const Shape *shape) { return (size_t)shape->n * shape->k * shape->h * shape->w; }

static size_t bytes_of(const Problem *problem, size_t count) { return count * (problem->type == CUDNN_HALF ? 2 : 4); }

static void add_memory_remedy(Problem *problem) {
    size_t free = 0, total = 0;
    problem->gpu->memory_info(&free, &total);
    text_format(&problem->stage->remedy, "close other programs that use the GPU (%u of its %u MB are free), and in your own program "
                "turn benchmark mode off, which tries algorithms with large workspaces",
                (unsigned long long)(free >> 20), (unsigned long long)(total >> 20));
}

int gpu_worked(Problem *problem, const char *what, int error) {
    if (error == GPU_SUCCESS) return 1;
    stage_failed(problem->stage);
    text_format(&problem->stage->reason, "%s failed: %s", what, gpu_error_name(problem->gpu, error));
    if (error == GPU_OUT_OF_MEMORY) {
        text_add(&problem->stage->reason, ", the GPU is out of memory");
        add_memory_remedy(problem);
    } else {
        text_add(&problem->stage->remedy, "run nvidia-smi to see whether the GPU is well, and install a newer driver if this stays");
    }
    return 0;
}

int host_worked(Problem *problem, const void *memory) {
    if (memory) return 1;
    stage_failed(problem->stage);
    text_add(&problem->stage->reason, "this machine is out of memory");
    text_add(&problem->stage->remedy, "close other programs");
    return 0;
}

int cudnn_worked(Problem *problem, const char *what, int status) {
    if (status == 0) return 1;
    const char *words = problem->api->error_text(status);
    Text *remedy = &problem->stage->remedy;
    stage_failed(problem->stage);
    text_format(&problem->stage->reason, "%s failed: %s (%d)", what, words, status);
    if (text_find(words, "ALLOC")) add_memory_remedy(problem);
    else text_add(remedy, remedy_of(words));
    return 0;
}

static int open_forms(Problem *problem) {
    const CudnnApi *api = problem->api;
    const Shape *at = &problem->shape;
    int pad = at->size / 2, type = problem->type, status = api->create_tensor(&problem->input_form);
    if (!status) status = api->create_tensor(&problem->output_form);
    if (!status) status = api->create_filter(&problem->filter_form);
    if (!status) status = api->create_convolution(&problem->convolution);
    if (!status) status = api->set_tensor(problem->input_form, CUDNN_NCHW, type, at->n, at->c, at->h, at->w);
    if (!status) status = api->set_tensor(problem->output_form, CUDNN_NCHW, type, at->n, at->k, at->h, at->w);
    if (!status) status = api->set_filter(problem->filter_form, type, CUDNN_NCHW, at->k, at->c, at->size, at->size);
    if (!status)
        status = api->set_convolution(problem->convolution, pad, pad, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_FLOAT);
    return cudnn_worked(problem, "describing a convolution", status);
}

static int take(Problem *problem, DeviceMemory *memory, size_t bytes) {
    STATIC_TEXT(what, 64);
    text_clear(&what);
    text_format(&what, "taking %u MB of GPU memory", (unsigned long long)((bytes >> 20) + 1));
    if (!gpu_worked(problem, what.bytes, problem->gpu->allocate(memory, bytes))) return 0;
    return gpu_worked(problem, "clearing GPU memory", problem->gpu->fill(*memory, POISON, bytes));
}

int problem_open(Problem *problem) {
    return open_forms(problem) && take(problem, &problem->input, bytes_of(problem, shape_inputs(&problem->shape))) &&
           take(problem, &problem->filter, bytes_of(problem, shape_filters(&problem->shape))) &&
           take(problem, &problem->output, bytes_of(problem, shape_outputs(&problem->shape)));
}

static void release(Problem *problem, DeviceMemory *memory) {
    if (*memory) problem->gpu->release(*memory);
    *memory = 0;
}

void problem_close(Problem *problem) {
    release(problem, &problem->input);
    release(problem, &problem->filter);
    release(problem, &problem->output);
    release(problem, &problem->workspace);
    if (problem->input_form) problem->api->destroy_tensor(problem->input_form);
    if (problem->output_form) problem->api->destroy_tensor(problem->output_form);
    if (problem->filter_form) problem->api->destroy_filter(problem->filter_form);
    if (problem->convolution) problem->api->destroy_convolution(problem->convolution);
    problem->input_form = problem->output_form = problem->filter_form = problem->convolution = 0;
}

typedef struct {
    Descriptor one_form, two_form, result_form;
    DeviceMemory one, two, result;
} Sides;

/* What a direction is given and what it makes. */
static Sides sides_of(const Problem *problem, Direction direction) {
    Sides input_first = {problem->input_form, problem->filter_form, problem->output_form,
                         problem->input, problem->filter, problem->output};
    Sides to_data = {problem->filter_form, problem->output_form, problem->input_form,
                     problem->filter, problem->output, problem->input};
    Sides to_filter = {problem->input_form, problem->output_form, problem->filter_form,
                       problem->input, problem->output, problem->filter};
    return direction == FORWARD ? input_first : direction == BACKWARD_DATA ? to_data : to_filter;
}

int problem_choose(Problem *problem, Direction direction) {
    const DirectionApi *api = &problem->api->directions[direction];
    Performance found[MOST_ALGORITHMS];
    Sides sides = sides_of(problem, direction);
    int count = 0, at = 0;
    int status = api->find(problem->check->handle, sides.one_form, sides.two_form, problem->convolution, sides.result_form,
                           MOST_ALGORITHMS, &count, found);
    if (!cudnn_worked(problem, "asking cuDNN for an algorithm", status)) return 0;
    while (at < count && found[at].status != 0) at++;
    if (at == count) return cudnn_worked(problem, "asking cuDNN for an algorithm", count ? found[0].status : -1);
    problem->algorithm = found[at].algorithm;
    release(problem, &problem->workspace);
    status = api->workspace(problem->check->handle, sides.one_form, sides.two_form, problem->convolution, sides.result_form,
                            problem->algorithm, &problem->workspace_bytes);
    if (!cudnn_worked(problem, "asking for the size of the workspace", status)) return 0;
    return !problem->workspace_bytes || take(problem, &problem->workspace, problem->workspace_bytes);
}

int problem_run(Problem *problem, Direction direction) {
    static const float one = 1, zero = 0;
    Sides sides = sides_of(problem, direction);
    int status = problem->api->directions[direction].run(
        problem->check->handle, &one, sides.one_form, sides.one, sides.two_form, sides.two, problem->convolution,
        problem->algorithm, problem->workspace, problem->workspace_bytes, &zero, sides.result_form, sides.result);
    return cudnn_worked(problem, direction_name(direction), status);
}

int algorithm_rounds(Direction direction, int algorithm) {
    /* cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdFilterAlgo_t */
    static const unsigned rounding[] = {1u << 4 | 1u << 5 | 1u << 6 | 1u << 7, 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5,
                                        1u << 2 | 1u << 4 | 1u << 5 | 1u << 6};
    return algorithm >= 0 && algorithm < 32 && (rounding[direction] >> algorithm & 1);
}

void make_numbers(signed char *numbers, size_t count, unsigned seed) {
    for (size_t at = 0; at < count; at++) {
        seed = seed * 1664525u + 1013904223u; /* Numerical Recipes' generator */
        numbers[at] = (signed char)((seed >> 24) % 5) - 2;
    }
}

/* A whole number of at most eleven bits in IEEE half precision. */
static unsigned short half_of(int number) {
    unsigned magnitude = (unsigned)(number < 0 ? -number : number), exponent = 0;
    if (!magnitude) return 0;
    while (magnitude >> (exponent + 1)) exponent++;
    unsigned fraction = (magnitude << 10 >> exponent) & 0x3FF;
    return (unsigned short)((number < 0 ? 0x8000u : 0) | (exponent + 15) << 10 | fraction);
}

int upload_numbers(Problem *problem, DeviceMemory to, const signed char *numbers, size_t count) {
    size_t bytes = bytes_of(problem, count);
    void *spelt = platform_allocate(bytes);
    if (!host_worked(problem, spelt)) return 0;
    for (size_t at = 0; at < count; at++) {
        if (problem->type == CUDNN_HALF) ((unsigned short *)spelt)[at] = half_of(numbers[at]);
        else ((float *)spelt)[at] = numbers[at];
    }
    int error = problem->gpu->upload(to, spelt, bytes);
    platform_release(spelt);
    return gpu_worked(problem, "copying to the GPU", error);
}

int problem_upload(Problem *problem) {
    size_t inputs = shape_inputs(&problem->shape), filters = shape_filters(&problem->shape);
    signed char *numbers = platform_allocate(inputs);
    if (!host_worked(problem, numbers)) return 0;
    make_numbers(numbers, inputs, INPUT_SEED);
    int worked = upload_numbers(problem, problem->input, numbers, inputs);
    make_numbers(numbers, filters, FILTER_SEED);
    worked = worked && upload_numbers(problem, problem->filter, numbers, filters);
    platform_release(numbers);
    return worked;
}

int problem_prepare(Check *check, StageId id, Problem *problem) {
    static CudnnApi api;
    Stage *stage = &check->report->stages[id];
    if (!check->handle || check->report->stages[CREATE].status != PASSED) {
        stage_not_run(stage, check->report->stages[CREATE].status == FAILED ? "cudnnCreate failed" : check->report->stages[CREATE].reason.bytes);
        return 0;
    }
    *problem = (Problem){.check = check, .stage = stage, .api = &api, .gpu = &check->gpu};
    stage_not_run(stage, "it did not come to an end");
    const char *missing = cudnn_find(&api, check->cudnn);
    if (!missing) return 1;
    stage_failed(stage);
    text_format(&stage->reason, "this cuDNN does not offer %s", missing);
    text_add(&stage->remedy, "replace every cuDNN library by those of one archive");
    return 0;
}
