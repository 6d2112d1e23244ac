module Weir
  VERSION = "0.1.0"
end
