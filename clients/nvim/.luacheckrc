-- What Neovim's Lua has: LuaJIT, and the global vim, whose options are written to.
std = "luajit"
globals = { "vim" }
max_line_length = 100
