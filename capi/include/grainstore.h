/*
 * grainstore: reads training datasets from C.
 *
 * RESULTS. A function that returns grainstore_status returns GRAINSTORE_OK, or GRAINSTORE_END, or an error; after an
 * error grainstore_error_text() is a sentence about it. Results are stored through the last pointers of a function
 * (`sample`, `bytes`, `len`, ...). After an error a handle is NULL, a number 0, and bytes are { NULL, 0 }.
 *
 * OWNERSHIP. What a function returns as a new handle (dataset, sample, batch, epoch) belongs to the program until it
 * calls grainstore_close, or the function that ends in _free, once for each; both take NULL, too. Handles do not
 * depend on each other: a sample, a batch and an epoch stay valid after grainstore_close. What a function returns as
 * `const` belongs to the library or to the handle that was asked; its line says for how long. Arguments are read during
 * the call only.
 *
 * TEXT. Text of the program is UTF-8 and ends with a zero byte. The path of a dataset may be any bytes.
 * Functions with `text`, `capacity` and `len` store text and a zero byte, and its length without that byte in `len`. If
 * `capacity` is too small, they store only `len`, and return GRAINSTORE_SHORT_BUFFER: ask with NULL and 0 first, then
 * with a buffer of len + 1.
 *
 * THREADS. Any number of threads may use a dataset, a sample or a batch at a time. An epoch may be used by several, too:
 * each batch goes to one of them. No thread may use a handle while another one frees it. A forked process may use the
 * datasets, samples and batches that it inherits; an epoch only where it was begun (GRAINSTORE_FORKED).
 *
 * ERRORS OF THE LIBRARY ITSELF are GRAINSTORE_INTERNAL: no exception and no panic leaves it, and it does not abort.
 *
 * The functions here keep their meaning. Structures of options may grow: they begin with their size, and members at 0
 * (or NULL) have the default, so `grainstore_epoch_options options = { .size = sizeof options };` is right for good.
 */
#ifndef GRAINSTORE_H
#define GRAINSTORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t grainstore_status;

#define GRAINSTORE_OK 0
#define GRAINSTORE_END 1              /* the epoch has no more batches */
#define GRAINSTORE_INVALID_ARGUMENT 2 /* an argument or option is wrong, or NULL */
#define GRAINSTORE_NOT_FOUND 3        /* nothing is at the path */
#define GRAINSTORE_NO_SAMPLE 4        /* no sample has this ordinal, key, or index in the batch */
#define GRAINSTORE_NO_NAME 5          /* no field or attribute has this name */
#define GRAINSTORE_NO_VALUE 6         /* the sample lacks the value, or the dataset has no keys */
#define GRAINSTORE_NOT_A_DATASET 7    /* what is at the path is something else, or unfinished */
#define GRAINSTORE_TOO_NEW 8          /* a later version of the library is needed */
#define GRAINSTORE_DAMAGED 9          /* bytes do not match their checksum, or break a rule of the format */
#define GRAINSTORE_READ_FAILED 10     /* the system could not read, or not in time */
#define GRAINSTORE_INVALID_STATE 11   /* not a state, or one of another epoch */
#define GRAINSTORE_NO_MEMORY 12
#define GRAINSTORE_SHORT_BUFFER 13    /* `capacity` is too small; `len` says what is needed */
#define GRAINSTORE_FORKED 14          /* the epoch belongs to the parent process */
#define GRAINSTORE_INTERNAL 15        /* a mistake in the library; please report the text */
#define GRAINSTORE_CHANGED 16         /* the dataset was changed since it was opened: open it again */

typedef struct grainstore_dataset grainstore_dataset;
typedef struct grainstore_sample grainstore_sample;
typedef struct grainstore_batch grainstore_batch;
typedef struct grainstore_epoch grainstore_epoch;

/* Bytes that belong to a handle. `data` is NULL where a sample lacks a field; a field of no bytes has `len` 0 only. */
typedef struct grainstore_bytes {
  const uint8_t *data;
  size_t len;
} grainstore_bytes;

/* How a dataset is opened. Members at 0 or NULL have the default. */
typedef struct grainstore_open_options {
  uint64_t size;           /* sizeof(grainstore_open_options) */
  const char *io;          /* "auto" (default), "direct", "buffered", "mapped" */
  const char *engine;      /* "auto" (default), "uring", "pread" */
  uint64_t threads;        /* reading threads, if the engine uses threads; default 16 */
  uint64_t queue_bytes;    /* bytes in flight on each device; default 8 MiB */
  uint64_t cache_bytes;    /* memory that keeps what epochs have read; default 0 */
  uint64_t generation;     /* counted from 1, the oldest; default: the newest */
  uint64_t allow_external; /* 1: an adopted dataset may name files outside its parent directory */
  uint64_t timeout_ms;     /* how long a read of a batch or epoch may take; default 120000 */
} grainstore_open_options;

/* An epoch. Members at 0 or NULL have the default. */
typedef struct grainstore_epoch_options {
  uint64_t size;         /* sizeof(grainstore_epoch_options) */
  uint64_t seed;         /* of the shuffle */
  uint64_t epoch;        /* its number: another one is another order */
  uint64_t batch_size;   /* samples of a batch of one rank; default 256 */
  uint64_t rank;         /* which of the ranks this is, from 0 */
  uint64_t world;        /* number of ranks; default 1 */
  uint64_t window_bytes; /* memory of the chunked order; default 256 MiB */
  uint64_t lanes;        /* of the chunked order; default: as the window allows */
  uint64_t group;        /* extents that are shuffled as one; default 1, or that of the state */
  uint64_t followed;     /* 1: the next epoch follows, and its first batches are read ahead */
  const char *order;     /* "auto" (default), "full", "chunked", "sequential" */
  const char *tail;      /* "short" (default), "drop", "pad" */
  const char *subset;    /* which samples, such as "label == 3"; default: all */
  const char *state;     /* a text of grainstore_epoch_state to resume from */
  const char *on_damage; /* "fail" (default), "skip": batches are shorter by the damaged samples */
} grainstore_epoch_options;

/* The version of the library, such as "0.1.0". Valid for good. */
const char *grainstore_version(void);

/* The text of the last error in this thread, never NULL. Valid until the thread's next error. */
const char *grainstore_error_text(void);

/* Opens the dataset, or the lone segment, at `path`. `options` may be NULL. */
grainstore_status grainstore_open(const char *path, const grainstore_open_options *options,
                                  grainstore_dataset **dataset);
void grainstore_close(grainstore_dataset *dataset);

/* Number of samples. */
uint64_t grainstore_count(const grainstore_dataset *dataset);

/* What is in the dataset, as JSON: "samples", "keyed", "fingerprint", "fields" and "attributes" (each a list of
 * {"name", "type"}), "metadata". */
grainstore_status grainstore_describe(const grainstore_dataset *dataset, uint8_t *text, size_t capacity, size_t *len);

/* The key of a sample, without a zero byte behind it; at most 65535 bytes. GRAINSTORE_NO_VALUE if there are no keys. */
grainstore_status grainstore_key(const grainstore_dataset *dataset, uint64_t ordinal, uint8_t *key, size_t capacity,
                                 size_t *len);

/* The ordinal of the sample that has a key. */
grainstore_status grainstore_find(const grainstore_dataset *dataset, const uint8_t *key, size_t key_len,
                                  uint64_t *ordinal);

/* Reads one sample. */
grainstore_status grainstore_get(const grainstore_dataset *dataset, uint64_t ordinal, grainstore_sample **sample);
grainstore_status grainstore_get_by_key(const grainstore_dataset *dataset, const uint8_t *key, size_t key_len,
                                        grainstore_sample **sample);

/* Reads `count` samples together, in the order of `ordinals`. */
grainstore_status grainstore_get_batch(const grainstore_dataset *dataset, const uint64_t *ordinals, size_t count,
                                       grainstore_batch **batch);

/* Of a sample. Bytes are valid until the sample is freed. */
uint64_t grainstore_sample_ordinal(const grainstore_sample *sample);
grainstore_bytes grainstore_sample_payload(const grainstore_sample *sample);
grainstore_status grainstore_sample_field(const grainstore_sample *sample, const char *name, grainstore_bytes *bytes);
void grainstore_sample_free(grainstore_sample *sample);

/* Of a batch. Bytes and ordinals are valid until the batch is freed. An epoch with "pad" marks the last
 * `padded_count` samples as repeated; one with "skip" counts the samples that are missing. */
size_t grainstore_batch_len(const grainstore_batch *batch);
const uint64_t *grainstore_batch_ordinals(const grainstore_batch *batch);
size_t grainstore_batch_padded_count(const grainstore_batch *batch);
size_t grainstore_batch_skipped_count(const grainstore_batch *batch);
grainstore_status grainstore_batch_payload(const grainstore_batch *batch, size_t index, grainstore_bytes *bytes);
grainstore_status grainstore_batch_field(const grainstore_batch *batch, size_t index, const char *name,
                                         grainstore_bytes *bytes);
void grainstore_batch_free(grainstore_batch *batch);

/* The values of an attribute for `count` samples. grainstore_integers: integers, booleans (0, 1), timestamps
 * (nanoseconds since 1970-01-01 UTC), categories (codes); grainstore_doubles: floating-point types. `values` has room
 * for `count`. So has `present`, which gets 1 for each sample that has the attribute and 0 for the others, whose value
 * is 0; with `present` NULL a sample that lacks it is an error, GRAINSTORE_NO_VALUE. */
grainstore_status grainstore_integers(const grainstore_dataset *dataset, const char *attribute,
                                      const uint64_t *ordinals, size_t count, int64_t *values, uint8_t *present);
grainstore_status grainstore_doubles(const grainstore_dataset *dataset, const char *attribute,
                                     const uint64_t *ordinals, size_t count, double *values, uint8_t *present);

/* The text of a category's code. */
grainstore_status grainstore_category(const grainstore_dataset *dataset, const char *attribute, uint32_t code,
                                      uint8_t *text, size_t capacity, size_t *len);

/* Begins an epoch. `options` may be NULL. Batches are read ahead by a thread of the epoch. */
grainstore_status grainstore_epoch_begin(const grainstore_dataset *dataset, const grainstore_epoch_options *options,
                                         grainstore_epoch **epoch);

/* Number of batches of this rank, from where the epoch began. */
uint64_t grainstore_epoch_batch_count(const grainstore_epoch *epoch);

/* Waits for the next batch. GRAINSTORE_END, and no batch, after the last one and after an error. */
grainstore_status grainstore_epoch_next(const grainstore_epoch *epoch, grainstore_batch **batch);

/* Where the epoch stands after the batches returned so far: a line of JSON, the same on every rank. */
grainstore_status grainstore_epoch_state(const grainstore_epoch *epoch, uint8_t *text, size_t capacity, size_t *len);
void grainstore_epoch_free(grainstore_epoch *epoch);

#ifdef __cplusplus
}
#endif

#endif
