/* The convolution stage: three directions and two types against a loop on the processor, and the
 * large shape in full against the plain kernel on the GPU. */
#include "convolution.h"

typedef struct {
    Direction direction;
    int type;
    Shape shape;
} Case;

static const Case CASES[] = {
    {FORWARD, CUDNN_FLOAT, {1, 3, 16, 16, 8, 3}},      {FORWARD, CUDNN_FLOAT, {2, 5, 9, 11, 5, 3}},
    {FORWARD, CUDNN_FLOAT, {4, 16, 6, 6, 4, 1}},       {BACKWARD_DATA, CUDNN_FLOAT, {1, 3, 16, 16, 8, 3}},
    {BACKWARD_FILTER, CUDNN_FLOAT, {1, 3, 16, 16, 8, 3}}, {FORWARD, CUDNN_HALF, {1, 16, 16, 16, 8, 3}},
};

enum { OUTPUT_SEED = 3, FIRST_GPU_WITH_HALF = 53 };
static const float ROUNDING = 0.25f; /* half of what still tells one whole number from the next */

typedef struct {
    signed char *input, *filter, *output;
    int *expected;
    size_t count; /* of what the direction makes */
} Numbers;

static void *take_host(size_t bytes) { return platform_allocate(bytes ? bytes : 1); }

static void close_numbers(Numbers *numbers) {
    platform_release(numbers->input);
    platform_release(numbers->filter);
    platform_release(numbers->output);
    platform_release(numbers->expected);
}

static size_t made_by(const Case *which) {
    if (which->direction == FORWARD) return shape_outputs(&which->shape);
    return which->direction == BACKWARD_DATA ? shape_inputs(&which->shape) : shape_filters(&which->shape);
}

/* One product of the sum that all three directions share: output += input * filter, and back. */
static void add_product(const Numbers *numbers, Direction direction, size_t input, size_t filter, size_t output) {
    if (direction == FORWARD) numbers->expected[output] += numbers->input[input] * numbers->filter[filter];
    else if (direction == BACKWARD_DATA) numbers->expected[input] += numbers->output[output] * numbers->filter[filter];
    else numbers->expected[filter] += numbers->output[output] * numbers->input[input];
}

static void add_filter(const Numbers *numbers, const Case *which, int n, int k, int row, int column) {
    const Shape *at = &which->shape;
    size_t output = (((size_t)n * at->k + k) * at->h + row) * at->w + column;
    for (int c = 0; c < at->c; c++)
        for (int r = 0; r < at->size; r++)
            for (int s = 0; s < at->size; s++) {
                int input_row = row + r - at->size / 2, input_column = column + s - at->size / 2;
                if (input_row < 0 || input_row >= at->h || input_column < 0 || input_column >= at->w) continue;
                size_t input = (((size_t)n * at->c + c) * at->h + input_row) * at->w + input_column;
                size_t filter = (((size_t)k * at->c + c) * at->size + r) * at->size + s;
                add_product(numbers, which->direction, input, filter, output);
            }
}

static void compute_expected(const Numbers *numbers, const Case *which) {
    const Shape *at = &which->shape;
    for (size_t index = 0; index < numbers->count; index++) numbers->expected[index] = 0;
    for (int n = 0; n < at->n; n++)
        for (int k = 0; k < at->k; k++)
            for (int row = 0; row < at->h; row++)
                for (int column = 0; column < at->w; column++) add_filter(numbers, which, n, k, row, column);
}

static int open_numbers(Numbers *numbers, const Case *which) {
    size_t inputs = shape_inputs(&which->shape), filters = shape_filters(&which->shape), outputs = shape_outputs(&which->shape);
    numbers->count = made_by(which);
    numbers->input = take_host(inputs);
    numbers->filter = take_host(filters);
    numbers->output = take_host(outputs);
    numbers->expected = take_host(numbers->count * sizeof *numbers->expected);
    if (!numbers->input || !numbers->filter || !numbers->output || !numbers->expected) return 0;
    make_numbers(numbers->input, inputs, INPUT_SEED);
    make_numbers(numbers->filter, filters, FILTER_SEED);
    make_numbers(numbers->output, outputs, OUTPUT_SEED);
    compute_expected(numbers, which);
    return 1;
}

static float number_of_half(unsigned short half) {
    int exponent = half >> 10 & 31, fraction = half & 0x3FF;
    if (exponent == 31) return fraction ? 0.0f / 0.0f : 1.0f / 0.0f;
    float magnitude = exponent ? (float)(fraction | 0x400) : (float)fraction;
    for (int at = exponent ? exponent : 1; at < 25; at++) magnitude /= 2;
    for (int at = exponent; at > 25; at--) magnitude *= 2;
    return half & 0x8000 ? -magnitude : magnitude;
}

static float result_at(const void *results, int type, size_t at) {
    return type == CUDNN_HALF ? number_of_half(((const unsigned short *)results)[at]) : ((const float *)results)[at];
}

/* No number is near nothing, so what cuDNN left untouched counts as wrong. */
static size_t count_wrong(const Numbers *numbers, const void *results, int type, float tolerance) {
    size_t wrong = 0;
    for (size_t at = 0; at < numbers->count; at++) {
        float distance = result_at(results, type, at) - (float)numbers->expected[at];
        if (!(distance <= tolerance && distance >= -tolerance)) wrong++;
    }
    return wrong;
}

static void add_facts(Problem *problem, Direction direction, size_t count, size_t wrong) {
    Text *facts = &problem->stage->facts;
    const Shape *at = &problem->shape;
    STATIC_TEXT(shape, 100);
    text_clear(&shape);
    text_format(&shape, "%dx%dx%dx%d, %d filters %dx%d", at->n, at->c, at->h, at->w, at->k, at->size, at->size);
    json_open(facts, '{');
    json_member(facts, "shape", shape.bytes);
    json_member(facts, "direction", direction_name(direction));
    json_member(facts, "type", problem->type == CUDNN_HALF ? "fp16" : "fp32");
    json_number_member(facts, "algorithm", (unsigned)problem->algorithm);
    json_number_member(facts, "workspace_bytes", problem->workspace_bytes);
    json_member(facts, "comparison", algorithm_rounds(direction, problem->algorithm) ? "rounded" : "equal");
    json_number_member(facts, "outputs", count);
    json_number_member(facts, "mismatches", wrong);
    json_close(facts, '}');
    if (!wrong) return;
    stage_failed(problem->stage);
    text_format(&problem->stage->reason, "%u of %u values are wrong (%s, %s, %s)", (unsigned long long)wrong,
                (unsigned long long)count, direction_name(direction), problem->type == CUDNN_HALF ? "fp16" : "fp32", shape.bytes);
    text_add(&problem->stage->remedy, "do not use these libraries on this machine: verify their SHA-256, then test the GPU's memory");
}

static DeviceMemory result_of(const Problem *problem, Direction direction) {
    return direction == FORWARD ? problem->output : direction == BACKWARD_DATA ? problem->input : problem->filter;
}

static int upload_given(Problem *problem, const Numbers *numbers, Direction direction) {
    const Shape *at = &problem->shape;
    return (direction == BACKWARD_DATA || upload_numbers(problem, problem->input, numbers->input, shape_inputs(at))) &&
           (direction == BACKWARD_FILTER || upload_numbers(problem, problem->filter, numbers->filter, shape_filters(at))) &&
           (direction == FORWARD || upload_numbers(problem, problem->output, numbers->output, shape_outputs(at)));
}

static int run_and_compare(Problem *problem, const Numbers *numbers, Direction direction) {
    size_t bytes = numbers->count * (problem->type == CUDNN_HALF ? 2 : 4);
    void *results = take_host(bytes);
    int worked = host_worked(problem, results) && problem_open(problem) && upload_given(problem, numbers, direction) &&
                 problem_choose(problem, direction) && problem_run(problem, direction) &&
                 gpu_worked(problem, "computing", problem->gpu->synchronize()) &&
                 gpu_worked(problem, "copying from the GPU", problem->gpu->download(results, result_of(problem, direction), bytes));
    if (worked) {
        float tolerance = algorithm_rounds(direction, problem->algorithm) ? ROUNDING : 0;
        add_facts(problem, direction, numbers->count, count_wrong(numbers, results, problem->type, tolerance));
    }
    platform_release(results);
    return worked && problem->stage->status != FAILED;
}

static int run_small(const Problem *like, const Case *which) {
    Problem problem = *like;
    Numbers numbers = {0};
    problem.shape = which->shape;
    problem.type = which->type;
    int worked = host_worked(&problem, open_numbers(&numbers, which) ? numbers.expected : 0);
    /* --spoil: one expected value is made wrong, to see that the check can fail. */
    if (worked && problem.check->options->spoils) numbers.expected[0] += 1;
    worked = worked && run_and_compare(&problem, &numbers, which->direction);
    problem_close(&problem);
    close_numbers(&numbers);
    return worked;
}

static int run_large(const Problem *like) {
    Problem problem = *like;
    PlainKernel kernel = {0};
    unsigned wrong = 0;
    int worked = plain_open(&problem, &kernel) && problem_run(&problem, FORWARD) && plain_convolve(&problem, &kernel);
    float tolerance = algorithm_rounds(FORWARD, problem.algorithm) ? ROUNDING : 0;
    worked = worked && plain_count(&problem, &kernel, tolerance, &wrong);
    if (worked) add_facts(&problem, FORWARD, shape_outputs(&problem.shape), wrong);
    plain_close(&problem, &kernel);
    return worked && !wrong;
}

void check_convolution(Check *check) {
    Problem problem;
    if (!problem_prepare(check, CONVOLUTION, &problem)) return;
    Text *facts = &problem.stage->facts;
    text_clear(facts);
    json_open(facts, '{');
    json_key(facts, "convolutions");
    json_open(facts, '[');
    int worked = 1;
    for (size_t at = 0; worked && at < sizeof CASES / sizeof *CASES; at++) {
        if (CASES[at].type == CUDNN_HALF && check->compute_capability < FIRST_GPU_WITH_HALF) continue;
        worked = run_small(&problem, &CASES[at]);
    }
    worked = worked && run_large(&problem);
    /* Last, and only here: a stage that stopped half-way must not read as passed. */
    if (worked) stage_passed(problem.stage);
    json_close(facts, ']');
    json_close(facts, '}');
}
