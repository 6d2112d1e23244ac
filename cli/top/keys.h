#pragma once

/* Keys are characters, or these. */
enum key {
    KEY_IS_NONE = 0,
    KEY_IS_ENTER = '\n',
    KEY_IS_KILL = 21, /* Ctrl-U: the whole line */
    KEY_IS_ESCAPE = 27,
    KEY_IS_TAB = '\t',
    KEY_IS_ERASE = 127,
    KEY_IS_UP = 0x110000, /* behind all characters */
    KEY_IS_DOWN,
    KEY_IS_PAGE_UP,
    KEY_IS_PAGE_DOWN,
    KEY_IS_HOME,
    KEY_IS_END,
    KEY_IS_LEFT,
    KEY_IS_RIGHT,
    KEY_IS_BACK_TAB,
    KEY_IS_OTHER,
};
