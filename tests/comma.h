/* A locale whose decimal point is a comma, such as that of Germany, for programs that call setlocale(): made
 * here, since the machine may have none. */
#pragma once

/* From now on setlocale(LC_NUMERIC, "") finds it, in this process and those that it starts. folder: has room
 * for it. */
void comma_begin(const char *folder);
/* Not any more; the locale of this process is C. */
void comma_end(void);
