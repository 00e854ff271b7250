#include "text.h"

#include <stdarg.h>

void text_clear(Text *text) {
    text->size = 0;
    text->bytes[0] = 0;
    text->is_cut = 0;
}

void text_add_bytes(Text *text, const char *bytes, size_t size) {
    for (size_t at = 0; at < size; at++) {
        if (text->size + 1 >= text->capacity) {
            text->is_cut = 1;
            break;
        }
        text->bytes[text->size++] = bytes[at];
    }
    text->bytes[text->size] = 0;
}

void text_add(Text *text, const char *words) { text_add_bytes(text, words, text_length(words)); }

static void add_number(Text *text, unsigned long long value, unsigned base, int least_digits) {
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789ABCDEF"[value % base];
        least_digits--;
    } while ((value /= base) != 0 || least_digits > 0);
    text_add_bytes(text, digits + at, sizeof digits - at);
}

static void add_real(Text *text, double value) {
    if (value < 0) {
        text_add(text, "-");
        value = -value;
    }
    unsigned long long thousandths = (unsigned long long)(value * 1000 + 0.5);
    add_number(text, thousandths / 1000, 10, 1);
    text_add(text, ".");
    add_number(text, thousandths % 1000, 10, 3);
}

void text_format(Text *text, const char *form, ...) {
    va_list arguments;
    va_start(arguments, form);
    for (; *form; form++) {
        if (*form != '%') {
            text_add_bytes(text, form, 1);
            continue;
        }
        switch (*++form) {
            case 's': text_add(text, va_arg(arguments, const char *)); break;
            case 'u': add_number(text, va_arg(arguments, unsigned long long), 10, 1); break;
            case 'x': add_number(text, va_arg(arguments, unsigned), 16, 8); break;
            case 'f': add_real(text, va_arg(arguments, double)); break;
            case 'd': {
                int value = va_arg(arguments, int);
                if (value < 0) text_add(text, "-");
                add_number(text, value < 0 ? 0ull - (unsigned long long)value : (unsigned long long)value, 10, 1);
                break;
            }
            default: text_add_bytes(text, form, 1); break;
        }
    }
    va_end(arguments);
}

size_t text_length(const char *words) {
    size_t size = 0;
    while (words[size]) size++;
    return size;
}

static char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? (char)(letter + 32) : letter; }

int text_begins(const char *words, const char *prefix) {
    for (; *prefix; prefix++, words++)
        if (*words != *prefix) return 0;
    return 1;
}

int text_begins_ignoring_case(const char *words, const char *prefix) {
    for (; *prefix; prefix++, words++)
        if (lower(*words) != lower(*prefix)) return 0;
    return 1;
}

int text_same(const char *one, const char *other) {
    return text_length(one) == text_length(other) && text_begins(one, other);
}

int text_same_ignoring_case(const char *one, const char *other) {
    return text_length(one) == text_length(other) && text_begins_ignoring_case(one, other);
}

int text_ends(const char *words, const char *suffix) {
    size_t size = text_length(words), wanted = text_length(suffix);
    return size >= wanted && text_same(words + size - wanted, suffix);
}

const char *text_find(const char *words, const char *wanted) {
    for (; *words; words++)
        if (text_begins(words, wanted)) return words;
    return 0;
}

static void begin_item(Text *text) {
    char last = text->size ? text->bytes[text->size - 1] : '[';
    if (last != '{' && last != '[' && last != ':') text_add(text, ",");
}

void json_open(Text *text, char bracket) {
    begin_item(text);
    text_add_bytes(text, &bracket, 1);
}

void json_close(Text *text, char bracket) { text_add_bytes(text, &bracket, 1); }

static void add_escaped(Text *text, unsigned char byte) {
    if (byte == '"' || byte == '\\') {
        char pair[2] = {'\\', (char)byte};
        text_add_bytes(text, pair, 2);
    } else if (byte < 0x20 || byte == 0x7F) {
        text_add(text, "\\u");
        add_number(text, byte, 16, 4);
    } else {
        text_add_bytes(text, (const char *)&byte, 1);
    }
}

void json_string(Text *text, const char *value) {
    begin_item(text);
    text_add(text, "\"");
    for (; *value; value++) add_escaped(text, (unsigned char)*value);
    text_add(text, "\"");
}

void json_key(Text *text, const char *key) {
    json_string(text, key);
    text_add(text, ":");
}

void json_number(Text *text, unsigned long long value) {
    begin_item(text);
    add_number(text, value, 10, 1);
}

void json_real(Text *text, double value) {
    begin_item(text);
    add_real(text, value);
}

void json_boolean(Text *text, int value) {
    begin_item(text);
    text_add(text, value ? "true" : "false");
}

void json_raw(Text *text, const char *document) {
    begin_item(text);
    text_add(text, document);
}

void json_member(Text *text, const char *key, const char *value) {
    json_key(text, key);
    json_string(text, value);
}

void json_number_member(Text *text, const char *key, unsigned long long value) {
    json_key(text, key);
    json_number(text, value);
}
