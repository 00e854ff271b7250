/* The large shape timed on the GPU, by cuDNN and by the plain kernel. */
#include "convolution.h"

enum { WARM_UP_RUNS = 10, TIMED_RUNS = 100, PLAIN_RUNS = 10, MOST_RUNS = 100 };

/* By the plain kernel, or by cuDNN where there is none. */
static int run_once(Problem *problem, const PlainKernel *kernel) {
    return kernel ? plain_convolve(problem, kernel) : problem_run(problem, FORWARD);
}

static float median_of(float *times, int count) {
    for (int at = 1; at < count; at++)
        for (int to = at; to > 0 && times[to - 1] > times[to]; to--) {
            float swapped = times[to];
            times[to] = times[to - 1];
            times[to - 1] = swapped;
        }
    return times[count / 2];
}

/* The median of many runs, each between two events of the GPU's own clock; below zero: failed. */
static float time_runs(Problem *problem, const PlainKernel *kernel, int warm_up, int runs) {
    static float times[MOST_RUNS];
    const Gpu *gpu = problem->gpu;
    GpuObject from = 0, to = 0;
    int worked = gpu_worked(problem, "making an event", gpu->event_create(&from, 0)) &&
                 gpu_worked(problem, "making an event", gpu->event_create(&to, 0));
    for (int at = 0; worked && at < warm_up; at++) worked = run_once(problem, kernel);
    for (int at = 0; worked && at < runs; at++)
        worked = gpu_worked(problem, "timing", gpu->event_record(from, 0)) && run_once(problem, kernel) &&
                 gpu_worked(problem, "timing", gpu->event_record(to, 0)) && gpu_worked(problem, "timing", gpu->event_wait(to)) &&
                 gpu_worked(problem, "timing", gpu->event_elapsed(&times[at], from, to));
    if (from) gpu->event_destroy(from);
    if (to) gpu->event_destroy(to);
    return worked ? median_of(times, runs) : -1;
}

static void add_times(Problem *problem, float cudnn, float plain) {
    Text *facts = &problem->stage->facts;
    double ratio = cudnn > 0 ? (double)plain / (double)cudnn : 0;
    text_clear(facts);
    json_open(facts, '{');
    json_member(facts, "shape", "32x3x224x224, 64 filters 3x3");
    json_number_member(facts, "algorithm", (unsigned)problem->algorithm);
    json_key(facts, "milliseconds");
    json_real(facts, cudnn);
    json_key(facts, "plain_milliseconds");
    json_real(facts, plain);
    json_key(facts, "ratio");
    json_real(facts, ratio);
    json_number_member(facts, "runs", TIMED_RUNS);
    json_number_member(facts, "warm_up", WARM_UP_RUNS);
    json_close(facts, '}');
    stage_passed(problem->stage);
    text_format(&problem->stage->reason, "%f ms, %f times as fast as a plain kernel", (double)cudnn, ratio);
    if (ratio < 1.3) text_add(&problem->stage->reason, "; that is close to 1, so cuDNN may not be at work");
}

void check_benchmark(Check *check) {
    Problem problem;
    PlainKernel kernel = {0};
    if (check->report->stages[CREATE].status == PASSED && check->report->stages[CONVOLUTION].status != PASSED) {
        stage_not_run(&check->report->stages[BENCHMARK], "the convolution failed");
        return;
    }
    if (!problem_prepare(check, BENCHMARK, &problem)) return;
    float cudnn_time = -1, plain_time = -1;
    if (plain_open(&problem, &kernel)) cudnn_time = time_runs(&problem, 0, WARM_UP_RUNS, TIMED_RUNS);
    if (cudnn_time >= 0) plain_time = time_runs(&problem, &kernel, 2, PLAIN_RUNS);
    if (plain_time >= 0) add_times(&problem, cudnn_time, plain_time);
    plain_close(&problem, &kernel);
}
