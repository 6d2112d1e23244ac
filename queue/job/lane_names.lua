-- lane_names: the name of a lane says which jobs wait there.
--
--   lane   = queue "/" type "/" key      key is empty for a type without keys
--            queue "!/" type "/" key     where suspects wait: see claim_alone

local lane_names = {}

-- Returns the queue, type and key of a lane.
function lane_names.parts(lane) return lane:match('^([^/]+)/([^/]+)/(.*)$') end

-- True for a lane of suspects. The other functions name a lane as one of suspects, and give a lane or a token its usual name.
function lane_names.is_alone(lane) return find(lane, '!/', 1, true) ~= nil end
function lane_names.alone(lane) return (lane:gsub('^([^/!]+)!?/', '%1!/')) end
function lane_names.usual(lane) return find(lane, '!', 1, true) and lane:gsub('^([^/!]+)!/', '%1/') or lane end

-- True for the name of a queue, and of its lanes of suspects.
function lane_names.is_queue(name) return is_name(name) or name ~= nil and is_name(match(name, '^(.*)!$')) end
function lane_names.usual_queue(name) return match(name, '^[^!]*') end

return lane_names
