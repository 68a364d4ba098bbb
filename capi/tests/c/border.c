/* Calls every function, rightly and wrongly. The argument is a dataset of 20 samples, written by the test. */
#include <grainstore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                  \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "line %d: %s\n%s\n", __LINE__, #condition, grainstore_error_text()); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

static int has(const char *text, const char *part) { return strstr(text, part) != NULL; }
static const uint8_t *bytes(const char *text) { return (const uint8_t *)text; }

static void wrong_calls(const char *path, grainstore_dataset *dataset) {
  grainstore_dataset *none = (grainstore_dataset *)path;
  grainstore_sample *sample = NULL;
  grainstore_batch *batch = NULL;
  grainstore_epoch *epoch = NULL;
  grainstore_bytes found;
  size_t len;
  uint64_t ordinal;
  EXPECT(grainstore_open(NULL, NULL, &none) == GRAINSTORE_INVALID_ARGUMENT && none == NULL);
  EXPECT(has(grainstore_error_text(), "path is NULL"));
  EXPECT(grainstore_open(path, NULL, NULL) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_open("/nowhere/at/all", NULL, &none) == GRAINSTORE_NOT_FOUND);
  EXPECT(grainstore_open("/bin/sh", NULL, &none) == GRAINSTORE_NOT_A_DATASET);
  grainstore_open_options open = {.size = sizeof open, .io = "fast"};
  EXPECT(grainstore_open(path, &open, &none) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(has(grainstore_error_text(), "fast"));
  open = (grainstore_open_options){.size = sizeof open, .io = "\xff"};
  EXPECT(grainstore_open(path, &open, &none) == GRAINSTORE_INVALID_ARGUMENT);
  open = (grainstore_open_options){.size = 3};
  EXPECT(grainstore_open(path, &open, &none) == GRAINSTORE_INVALID_ARGUMENT);
  open = (grainstore_open_options){.size = sizeof open, .generation = 2};
  EXPECT(grainstore_open(path, &open, &none) == GRAINSTORE_INVALID_ARGUMENT);
  struct { grainstore_open_options known; uint64_t later; } newer = {{.size = sizeof newer}, 0};
  EXPECT(grainstore_open(path, &newer.known, &none) == GRAINSTORE_OK);
  grainstore_close(none);
  newer.later = 1;
  EXPECT(grainstore_open(path, &newer.known, &none) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(has(grainstore_error_text(), "does not know"));
  uint64_t older[2] = {sizeof older, 0};
  EXPECT(grainstore_open(path, (grainstore_open_options *)older, &none) == GRAINSTORE_OK);
  grainstore_close(none);

  EXPECT(grainstore_count(NULL) == 0);
  EXPECT(grainstore_get(NULL, 0, &sample) == GRAINSTORE_INVALID_ARGUMENT && sample == NULL);
  EXPECT(grainstore_get(dataset, 20, &sample) == GRAINSTORE_NO_SAMPLE && sample == NULL);
  EXPECT(grainstore_get(dataset, 0, NULL) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_get_by_key(dataset, bytes("nobody"), 6, &sample) == GRAINSTORE_NO_SAMPLE);
  EXPECT(grainstore_get_by_key(dataset, NULL, 6, &sample) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_find(dataset, NULL, 0, &ordinal) == GRAINSTORE_NO_SAMPLE);
  EXPECT(grainstore_get_batch(dataset, NULL, 2, &batch) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_get_batch(dataset, &(uint64_t){77}, 1, &batch) == GRAINSTORE_NO_SAMPLE && batch == NULL);
  EXPECT(grainstore_get_batch(dataset, &(uint64_t){1}, SIZE_MAX, &batch) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_sample_payload(NULL).data == NULL && grainstore_sample_ordinal(NULL) == 0);
  EXPECT(grainstore_batch_len(NULL) == 0 && grainstore_batch_ordinals(NULL) == NULL);
  EXPECT(grainstore_epoch_batch_count(NULL) == 0);
  EXPECT(grainstore_epoch_next(NULL, &batch) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_epoch_state(NULL, NULL, 0, &len) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_batch_field(NULL, 0, "image", &found) == GRAINSTORE_INVALID_ARGUMENT && found.data == NULL);

  const struct { const char *order, *tail, *subset, *state, *on_damage; uint64_t rank, group, followed; int status; } epochs[] = {
      {.order = "random", .status = GRAINSTORE_INVALID_ARGUMENT},
      {.tail = "cut", .status = GRAINSTORE_INVALID_ARGUMENT},
      {.subset = "label ==", .status = GRAINSTORE_INVALID_ARGUMENT},
      {.subset = "nothing == 1", .status = GRAINSTORE_INVALID_ARGUMENT},
      {.state = "{}", .status = GRAINSTORE_INVALID_STATE},
      {.on_damage = "hide", .status = GRAINSTORE_INVALID_ARGUMENT},
      {.rank = 1, .status = GRAINSTORE_INVALID_ARGUMENT},
      {.group = 1ull << 40, .status = GRAINSTORE_INVALID_ARGUMENT},
      {.followed = 2, .status = GRAINSTORE_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++) {
    grainstore_epoch_options options = {.size = sizeof options,
                                        .order = epochs[i].order,
                                        .tail = epochs[i].tail,
                                        .subset = epochs[i].subset,
                                        .state = epochs[i].state,
                                        .on_damage = epochs[i].on_damage,
                                        .rank = epochs[i].rank,
                                        .group = epochs[i].group,
                                        .followed = epochs[i].followed};
    EXPECT(grainstore_epoch_begin(dataset, &options, &epoch) == epochs[i].status && epoch == NULL);
    EXPECT(grainstore_error_text()[0] != 0);
  }
  grainstore_close(NULL);
  grainstore_sample_free(NULL);
  grainstore_batch_free(NULL);
  grainstore_epoch_free(NULL);
}

static void texts(grainstore_dataset *dataset) {
  uint8_t text[4096], small[3] = {9, 9, 9};
  size_t len;
  EXPECT(grainstore_describe(dataset, NULL, 0, &len) == GRAINSTORE_SHORT_BUFFER && len > 100);
  EXPECT(grainstore_describe(dataset, text, len, &len) == GRAINSTORE_SHORT_BUFFER);
  EXPECT(grainstore_describe(dataset, text, len + 1, &len) == GRAINSTORE_OK && strlen((char *)text) == len);
  EXPECT(has((char *)text, "{\"name\":\"label\",\"type\":\"int32\"}") && has((char *)text, "\"samples\":20"));
  EXPECT(grainstore_key(dataset, 3, small, 3, &len) == GRAINSTORE_SHORT_BUFFER && len == 5 && small[0] == 9);
  EXPECT(grainstore_key(dataset, 3, text, 5, &len) == GRAINSTORE_OK && memcmp(text, "key/3", 5) == 0);
  EXPECT(grainstore_key(dataset, 20, text, 5, &len) == GRAINSTORE_NO_SAMPLE && len == 0);
  EXPECT(grainstore_category(dataset, "split", 1, text, 4, &len) == GRAINSTORE_OK && !strcmp((char *)text, "val"));
  EXPECT(grainstore_category(dataset, "split", 2, text, 4, &len) == GRAINSTORE_NO_VALUE);
  EXPECT(grainstore_category(dataset, "label", 0, text, 4, &len) == GRAINSTORE_INVALID_ARGUMENT);
}

static void attributes(grainstore_dataset *dataset) {
  const uint64_t ordinals[3] = {3, 0, 3};
  int64_t integers[3];
  double doubles[3];
  uint8_t present[3];
  EXPECT(grainstore_integers(dataset, "label", ordinals, 3, integers, NULL) == GRAINSTORE_OK);
  EXPECT(integers[0] == -2 && integers[1] == -5 && integers[2] == -2);
  EXPECT(grainstore_integers(dataset, "split", ordinals, 3, integers, present) == GRAINSTORE_OK);
  EXPECT(integers[0] == 1 && integers[1] == 0 && present[0] == 1);
  EXPECT(grainstore_doubles(dataset, "weight", ordinals, 3, doubles, NULL) == GRAINSTORE_NO_VALUE);
  EXPECT(grainstore_doubles(dataset, "weight", ordinals, 3, doubles, present) == GRAINSTORE_OK);
  EXPECT(doubles[0] == 0 && doubles[1] == 0.5 && present[0] == 0 && present[1] == 1);
  EXPECT(grainstore_integers(dataset, "weight", ordinals, 3, integers, present) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_integers(dataset, "huge", ordinals, 3, integers, present) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_doubles(dataset, "split", ordinals, 3, doubles, present) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_integers(dataset, "none", ordinals, 3, integers, NULL) == GRAINSTORE_NO_NAME);
  EXPECT(grainstore_integers(dataset, NULL, ordinals, 3, integers, NULL) == GRAINSTORE_INVALID_ARGUMENT);
  EXPECT(grainstore_integers(dataset, "label", &(uint64_t){20}, 1, integers, NULL) == GRAINSTORE_NO_SAMPLE);
  EXPECT(grainstore_integers(dataset, "label", NULL, 0, NULL, NULL) == GRAINSTORE_OK);
}

static int is_image(grainstore_bytes image, uint64_t ordinal) {
  if (image.len != 4 * (5 + ordinal % 7)) return 0;
  for (size_t i = 0; i < image.len; i++) {
    if (image.data[i] != (i % 4 == 0 ? ordinal : 0)) return 0;
  }
  return 1;
}

static void samples(const char *path) {
  grainstore_dataset *dataset;
  grainstore_sample *sample;
  grainstore_batch *batch;
  grainstore_bytes found;
  uint64_t ordinal;
  grainstore_open_options options = {.size = sizeof options, .io = "buffered", .engine = "pread", .threads = 2};
  EXPECT(grainstore_open(path, &options, &dataset) == GRAINSTORE_OK);
  EXPECT(grainstore_count(dataset) == 20);
  EXPECT(grainstore_find(dataset, bytes("key/7"), 5, &ordinal) == GRAINSTORE_OK && ordinal == 7);
  EXPECT(grainstore_get_by_key(dataset, bytes("key/7"), 5, &sample) == GRAINSTORE_OK);
  EXPECT(grainstore_get_batch(dataset, (uint64_t[]){4, 19, 4}, 3, &batch) == GRAINSTORE_OK);
  grainstore_close(dataset);
  EXPECT(grainstore_sample_ordinal(sample) == 7);
  EXPECT(grainstore_sample_field(sample, "image", &found) == GRAINSTORE_OK && is_image(found, 7));
  EXPECT(grainstore_sample_field(sample, "text", &found) == GRAINSTORE_OK && found.data == NULL && found.len == 0);
  EXPECT(grainstore_sample_field(sample, "sound", &found) == GRAINSTORE_NO_NAME);
  EXPECT(has(grainstore_error_text(), "image, text"));
  EXPECT(grainstore_sample_payload(sample).len == 20);
  EXPECT(grainstore_batch_len(batch) == 3 && grainstore_batch_ordinals(batch)[1] == 19);
  EXPECT(grainstore_batch_field(batch, 1, "image", &found) == GRAINSTORE_OK && is_image(found, 19));
  EXPECT(grainstore_batch_field(batch, 3, "image", &found) == GRAINSTORE_NO_SAMPLE);
  EXPECT(grainstore_batch_payload(batch, 0, &found) == GRAINSTORE_OK && found.len == 4 * 9);
  EXPECT(grainstore_batch_padded_count(batch) == 0 && grainstore_batch_skipped_count(batch) == 0);
  grainstore_sample_free(sample);
  grainstore_batch_free(batch);
}

static void epochs(grainstore_dataset *dataset) {
  grainstore_epoch *epoch;
  grainstore_batch *batch;
  grainstore_bytes found;
  unsigned seen = 0;
  grainstore_epoch_options options = {.size = sizeof options, .batch_size = 3, .subset = "label < 5", .world = 2, .tail = "pad"};
  EXPECT(grainstore_epoch_begin(dataset, &options, &epoch) == GRAINSTORE_OK);
  EXPECT(grainstore_epoch_batch_count(epoch) == 2);
  while (grainstore_epoch_next(epoch, &batch) == GRAINSTORE_OK) {
    EXPECT(grainstore_batch_len(batch) == 3);
    for (size_t i = 0; i < 3; i++) {
      uint64_t ordinal = grainstore_batch_ordinals(batch)[i];
      EXPECT(grainstore_batch_field(batch, i, "image", &found) == GRAINSTORE_OK && is_image(found, ordinal));
      seen |= 1u << ordinal;
    }
    grainstore_batch_free(batch);
  }
  EXPECT((seen & ~0x3ffu) == 0);
  EXPECT(grainstore_epoch_next(epoch, &batch) == GRAINSTORE_END && batch == NULL);
  grainstore_epoch_free(epoch);
  /* One that is freed while it reads. */
  EXPECT(grainstore_epoch_begin(dataset, NULL, &epoch) == GRAINSTORE_OK);
  grainstore_epoch_free(epoch);
}

int main(int argc, char **argv) {
  grainstore_dataset *dataset;
  EXPECT(argc == 2);
  EXPECT(grainstore_version()[0] == '0' && grainstore_error_text()[0] == 0);
  EXPECT(grainstore_open(argv[1], NULL, &dataset) == GRAINSTORE_OK);
  wrong_calls(argv[1], dataset);
  texts(dataset);
  attributes(dataset);
  samples(argv[1]);
  epochs(dataset);
  grainstore_close(dataset);
  return 0;
}
