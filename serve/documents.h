/* GET below /api: the documents of view/, which weir prints with --json. */
#ifndef SERVE_DOCUMENTS_H
#define SERVE_DOCUMENTS_H

#include "serve/resource.h"

extern const struct resource document_resources[];

#endif
