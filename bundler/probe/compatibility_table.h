/* Made by scripts/compatibility_table.py from recipes/compatibility.json: change those. */
#ifndef COMPATIBILITY_TABLE_H
#define COMPATIBILITY_TABLE_H

#if defined(_WIN32)
#define HERE(linux_driver, windows_driver) windows_driver
#else
#define HERE(linux_driver, windows_driver) linux_driver
#endif

/* cudnnGetCudartVersion from, below; what the driver must answer; in words. */
static const struct {
    int from, below, driver_cuda;
    const char *driver_cuda_words, *driver;
} DRIVERS[] = {
    {9000, 9010, 9000, "9.0", HERE("384.81", "385.54")},
    {9010, 9020, 9010, "9.1", HERE("390.46", "391.29")},
    {9020, 9030, 9020, "9.2", HERE("396.26", "397.44")},
    {10000, 10010, 10000, "10.0", HERE("410.48", "411.31")},
    {10010, 10020, 10010, "10.1", HERE("418.39", "418.96")},
    {10020, 10030, 10020, "10.2", HERE("440.33", "441.22")},
    {11000, 12000, 11000, "11.0", HERE("450.80.02", "452.39")},
    {12000, 13000, 12000, "12.0", HERE("525.60.13", "527.41")},
    {13000, 14000, 13000, "13.0", HERE("580.65.06", "580")},
};

/* CUDA major; cuDNN from and through, major * 10000 + minor * 100 + patch; compute
 * capabilities, 75 is 7.5 and 0 is no limit. Older cuDNNs first. */
static const struct {
    int cuda, from, through, oldest, newest;
    const char *version;
} DEVICES[] = {
    {10, 80000, 80003, 30, 0, "8.0.3"},
    {11, 80000, 80500, 35, 0, "8.5.0"},
    {11, 80901, 91002, 50, 90, "9.10.2"},
    {12, 80901, 90000, 50, 90, "9.0.0"},
    {12, 91002, 91002, 50, 120, "9.10.2"},
    {12, 91700, 91700, 75, 120, "9.17.0"},
    {13, 91700, 91700, 75, 120, "9.17.0"},
};

#endif
