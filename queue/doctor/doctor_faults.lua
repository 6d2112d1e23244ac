-- doctor_faults: what the doctor can find. A fault has the check that names it, how bad it is, its sentence, and what to do: a
-- repair, or words for the user.
--
--   doctor_faults.find(family, name)       -> what is wrong with a thing: {fault, check, state, text, todo, repair (true: --repair
--                                             does it)}; nil: nothing
--   doctor_faults.note(fault, ...)         -> the same of what needs no second look; the values of its sentence follow
--   doctor_faults.repair(family, name)     -> judges a thing at all places and repairs it: as find, with done, in words, when it
--                                             was repaired
--   doctor_faults.each(ARGV, verb)         -> find or repair of each thing, the reply of a script with these arguments: now,
--                                             "<family> <name>" of each thing
--
-- uses: doctor_judge doctor_repair
local doctor_faults = {}

local R = doctor_repair
local ENQUEUE_AGAIN = 'enqueue again what is missing, compare the limits with what they were (weir rate list), and check Redis\'s AOF or failover'

-- check, state, sentence, repair or what to do
local faults = {
    ['nowhere'] = {'places', 'wrong', '%s waits nowhere: nobody looks at its %s', R.place},
    ['twice'] = {'places', 'wrong', '%s waits in several places: %s', R.place},
    ['listed'] = {'places', 'wrong', '%s lists %s, and there is no %s', R.listed},
    ['credit'] = {'places', 'warning', '%s lists %s, and there is no %s', R.listed},
    ['held'] = {'held', 'warning', 'type %s of queue %s is held: no worker that looked can run it', 'start a worker that has a handler for it'},

    ['closed'] = {'gates', 'wrong', 'gate %s of queue %s has waiters, and nothing opens it for them', R.gate},
    ['star'] = {'gates', 'wrong', 'wake:%s does not say when lanes in sleep wake', R.star},
    ['slots'] = {'slots', 'wrong', 'gate %s counts %s in flight, and %d leases took it', R.slots},
    ['slots-uncounted'] = {'slots', 'ok', 'not checked: %s running are too many to count in one call', ''},

    ['counters'] = {'counters', 'wrong', 'type %s: there are %+d parked, %+d running, %+d scheduled jobs than counted', R.counters},
    ['counters-moving'] = {'counters', 'wrong', 'type %s: there are %+d parked, %+d running, %+d scheduled jobs than counted',
                           'its jobs move, so the right numbers are not known: stop its workers, then weir doctor --repair'},
    ['counter'] = {'counters', 'wrong', 'type %s: the counters %s are not whole numbers', R.counter},
    ['queued'] = {'queues', 'warning', 'counters say that %s wait, and %d are in queues: a queue was deleted by hand', R.queued},
    ['dead'] = {'dead', 'warning', '%s', 'weir dead list'},

    ['worker-unlisted'] = {'workers', 'wrong', 'worker %s is not in workers: nobody takes its %s back when it dies', R.worker_unlisted},
    ['worker-bare'] = {'workers', 'wrong', 'worker %s has a deadline and no record', R.worker_bare},
    ['silent'] = {'workers', 'warning', 'worker %s is silent, %d s past its deadline, with %s',
                  'start a worker: its heartbeats take the jobs of silent workers back'},
    ['token'] = {'workers', 'wrong', 'a lease cannot be read: %s', 'its job goes to the dead jobs when its worker ends'},
    ['unregistered'] = {'registries', 'wrong', '%s is not in %s: %s', R.register},

    ['limit'] = {'limits', 'wrong', 'limit %s: its rules cannot be read, so its types stand still: %s', 'set it again: weir rate set NAME RULE'},
    ['limit-gone'] = {'limits', 'wrong', 'type %s uses limit %s, which does not exist: it has no effect', 'weir rate set NAME RULE, or weir rate unuse TYPE NAME'},
    ['limit-lost'] = {'limits', 'warning', 'limit %s is gone, and nobody removed it; it was %s', 'weir rate set NAME RULE'},
    ['weights'] = {'limits', 'warning', 'limit %s has weights, and none of them is there', 'set them again: weir rate weight NAME KEY N'},
    ['keyless'] = {'limits', 'warning', 'type %s: %d of %s had nothing at %s, the path of limit %s: they share one gate',
                   'weir rate set NAME RULE,by=PATH with the path that its jobs have'},

    ['record'] = {'later', 'wrong', 'later has a record that cannot be read: %s', 'it goes to the dead jobs when it is due'},
    ['occurrence'] = {'schedules', 'wrong', 'later has an occurrence of schedule %s, which does not exist', R.occurrence},
    ['schedule'] = {'schedules', 'wrong', 'schedule %s has no next occurrence: it never runs again', 'add it again: weir schedule add'},
    ['batch'] = {'batches', 'wrong', 'batch %s: %d have ended, of %s', 'its numbers are lost; its jobs are not affected'},
    ['batch-open'] = {'batches', 'wrong', 'batch %s: all of its jobs have ended, and it has not', R.batch_open},
    ['aside'] = {'batches', 'warning', 'batch %s is not paused, and has %s set aside', 'weir batch resume NAME'},

    ['in-the-way'] = {'keys', 'wrong', '%s is a %s, not a %s', R.key},
    ['wrong-kind'] = {'keys', 'wrong', '%s is a %s, not a %s', 'another program writes here: rename or delete it, or use another --namespace'},
    ['put-aside'] = {'keys', 'warning', '%s is another program\'s: it was in the place of one of Weir\'s keys', 'look at it, then delete it'},
    ['misnamed'] = {'keys', 'wrong', '%s: its name cannot be read', 'rename or delete it'},
    ['foreign'] = {'keys', 'warning', '%s: not a key of this version', 'it is another program\'s or a newer version\'s; otherwise delete it'},

    ['lost'] = {'data', 'warning', 'Redis lost all of this namespace %d s ago: jobs, schedules, batches, unique locks, and limits that no worker knew',
                ENQUEUE_AGAIN},
    ['went-back'] = {'data', 'warning', 'Redis went back %.3f s ago: it lost what was written from %.3f to %.3f s before now, or more', ENQUEUE_AGAIN},
    ['error'] = {'errors', 'wrong', '%s', 'please report it'},
}

function doctor_faults.note(fault, ...)
    local f = faults[fault]
    local repaired = type(f[4]) == 'function'
    return {fault = fault, check = f[1], state = f[2], text = (format(f[3], ...):gsub('[^ -~]', '?')),
            todo = repaired and 'weir doctor --repair repairs it' or f[4], repair = repaired}
end

local function found(fault, ...) return fault and doctor_faults.note(fault, ...) end

function doctor_faults.find(family, name) return found(doctor_judge.look(family, name, true)) end

local function repair(family, name, fault, ...)
    local f = found(fault, ...)
    if not f or not f.repair then return f end
    local ok, done, todo = pcall(faults[fault][4], name, family, ...)
    if ok and done then
        f.done = done
    else
        f.todo = ok and todo or format('it was not repaired: %s', type(done) == 'table' and done.err or tostring(done))
    end
    return f
end

function doctor_faults.repair(family, name) return repair(family, name, doctor_judge.look(family, name, true)) end

function doctor_faults.each(ARGV, verb)
    for i = 2, #ARGV do
        if not doctor_judge.is_family(match(ARGV[i], '^%S+')) then return refuse('doctor: %s is not a thing', ARGV[i]) end
    end
    local all = {}
    for i = 2, #ARGV do
        local family, name = match(ARGV[i], '^(%S+) ?(.*)$')
        all[#all + 1] = verb(family, name)
    end
    return answer{found = all}
end

return doctor_faults
