--- What a user may choose on this side. The server's own settings are passed on as they are.
--- Knows nothing of requests or windows.

local M = {}

---@alias fimble.Action
---| "accept" # insert the suggestion
---| "accept_word" # insert its next word
---| "accept_line" # insert it up to the line's end
---| "next" # show another one
---| "previous"
---| "dismiss" # hide it until something changes
---| "trigger" # ask for several

---@class fimble.Options
---@field cmd? string[] how the server is started
---@field filetypes? string[] where it is started; everywhere if nil
---@field settings? table the server's settings, such as { completion = { multiline = "never" } }
---@field suggestions? boolean whether suggestions are shown from the beginning
---@field keys? table<fimble.Action, string|false> keys of insert mode
---@field restart_ms? integer milliseconds until a server that died is started again, first time

---@type fimble.Options
M.defaults = {
  cmd = { "fimble", "serve" },
  filetypes = nil,
  settings = {},
  suggestions = true,
  keys = { accept = "<Tab>" },
  restart_ms = 1000,
}

--- What the folder of a project has.
M.root_markers = { ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod" }

---@type fimble.Options
M.current = vim.deepcopy(M.defaults)

local TYPES = {
  cmd = "table",
  filetypes = "table",
  settings = "table",
  suggestions = "boolean",
  keys = "table",
  restart_ms = "number",
}

local ACTIONS = {
  accept = true,
  accept_word = true,
  accept_line = true,
  next = true,
  previous = true,
  dismiss = true,
  trigger = true,
}

--- Takes what the user gave; says what of it cannot be meant, and uses the rest.
---@param given? fimble.Options
---@return string[] problems
function M.use(given)
  local problems = {} ---@type string[]
  local usable = {} ---@type table<string, any>
  for name, value in pairs(given or {}) do
    if not TYPES[name] then
      table.insert(problems, ("%s is not an option."):format(name))
    elseif type(value) ~= TYPES[name] then
      table.insert(problems, ("%s must be a %s."):format(name, TYPES[name]))
    else
      usable[name] = value
    end
  end
  for action in pairs(usable.keys or {}) do
    if not ACTIONS[action] then
      table.insert(problems, ("keys.%s is not an action."):format(action))
    end
  end
  table.sort(problems)
  M.current = vim.tbl_deep_extend("force", M.defaults, usable)
  return problems
end

return M
