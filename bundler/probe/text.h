/* Building text and JSON in buffers of a fixed size.
 *
 * A buffer that is full stays cut short and says so, because a probe must not fail over its words.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

typedef struct {
    char *bytes; /* always ends with a zero */
    size_t size;
    size_t capacity; /* of the array, the zero included */
    int is_cut;
} Text;

/* Define a static buffer and the Text over it. */
#define STATIC_TEXT(name, capacity)       \
    static char name##_bytes[capacity];   \
    static Text name = {name##_bytes, 0, sizeof name##_bytes, 0}

void text_clear(Text *text);
void text_add(Text *text, const char *words);
void text_add_bytes(Text *text, const char *bytes, size_t size);

/* Understands %s, %d (int), %u (unsigned long long), %x (unsigned, 8 digits) and %f (double, three decimals). */
void text_format(Text *text, const char *form, ...);

size_t text_length(const char *words);
int text_same(const char *one, const char *other);
int text_same_ignoring_case(const char *one, const char *other);
int text_begins(const char *words, const char *prefix);
int text_begins_ignoring_case(const char *words, const char *prefix);
int text_ends(const char *words, const char *suffix);
const char *text_find(const char *words, const char *wanted);

/* Commas are written by themselves: an item needs one unless it follows an opening or a key. */
void json_open(Text *text, char bracket);
void json_close(Text *text, char bracket);
void json_key(Text *text, const char *key);
void json_string(Text *text, const char *value);
void json_number(Text *text, unsigned long long value);
void json_real(Text *text, double value);
void json_boolean(Text *text, int value);
void json_raw(Text *text, const char *document);
void json_member(Text *text, const char *key, const char *value);
void json_number_member(Text *text, const char *key, unsigned long long value);

#endif
