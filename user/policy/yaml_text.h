/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The text of a YAML file before it is parsed: what is in it, and where. */
#ifndef SLUICE_USER_POLICY_YAML_TEXT_H
#define SLUICE_USER_POLICY_YAML_TEXT_H

#include "policy/yaml.h"

/*
 * Refuses what is not UTF-8, NUL and other bytes that YAML does not allow: libyaml would
 * do so without telling a line.
 */
int sl_yaml_check_text(const struct sl_yaml_source *source, const char *text, size_t len);

/*
 * What stands at a position, to the end of the line, into `dst` as it is; "" when there is
 * no such place.
 */
void sl_yaml_text_at(char *dst, size_t size, const char *text, size_t len, struct sl_position at);

#endif
