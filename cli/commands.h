/* The commands, in the order in which weir help names them. */
#pragma once

#include "cli/cli.h"

extern const struct command command_enqueue, command_worker, command_job, command_queue, command_batch,
    command_rate, command_acl, command_take, command_hold, command_verify, command_dead, command_status,
    command_why, command_plan, command_report, command_serve, command_dev, command_doctor, command_init,
    command_version, command_schedule, command_top, command_type, command_config, command_apply,
    command_export, command_log;
