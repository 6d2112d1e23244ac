-- version: stands for a change of the scripts: with this file the library has another text, and so another name.

local version = {}

return version
