/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decisions as Network Activity (class 4001) of the Open Cybersecurity Schema Framework,
 * version 1.3.0 (schema.ocsf.io), with the profile security_control. What the schema has no
 * place for is in `unmapped`, under the names of sluice's own lines.
 */
#ifndef SLUICE_USER_OCSF_H
#define SLUICE_USER_OCSF_H

#include "event/view_event.h"

/* One object, one line; other events than decisions write nothing. 0 or -errno. */
int sl_ocsf_line(struct sl_line *line, const struct sl_view_event *view);

/* For tests. */
extern const struct sl_field sl_ocsf_fields[];

#endif
