--- The command :Fimble, a function for each of its subcommands.

local client_module = require("fimble.client")
local place = require("fimble.place")

local M = {}

---@class fimble.Call
---@field text string what stands behind the subcommand
---@field buf integer
---@field range integer how many lines were given: 0, 1 or 2
---@field line1 integer
---@field line2 integer

---@param call fimble.Call
---@param act fun(client: vim.lsp.Client)
local function with_client(call, act)
  local client = client_module.of(call.buf)
  if client then
    act(client)
  else
    vim.notify("fimble: no server runs for this file (:checkhealth fimble).", vim.log.levels.WARN)
  end
end

--- A subcommand that is one of the server's edits.
---@param task string
---@return fun(call: fimble.Call)
local function edit(task)
  return function(call)
    with_client(call, function(client)
      local range = place.range(call.buf, call, client.offset_encoding)
      local edits = require("fimble.edits")
      if task == "custom" then
        edits.edit(call.text, call.buf, range)
      else
        edits.ask(task, call.text, call.buf, range)
      end
    end)
  end
end

---@param call fimble.Call
---@param client vim.lsp.Client
---@return table[]
local function selection(call, client)
  local range = place.range(call.buf, call, client.offset_encoding)
  return {
    {
      kind = "selection",
      uri = vim.uri_from_bufnr(call.buf),
      range = range,
      diagnostics = place.diagnostics(call.buf, range, client.offset_encoding),
    },
  }
end

---@type table<string, fun(call: fimble.Call)>
local COMMANDS = {
  edit = edit("custom"),
  fix = edit("fix"),
  tests = edit("tests"),
  document = edit("document"),
  explain = function(call)
    with_client(call, function(client)
      local chat = require("fimble.chat")
      chat.open(selection(call, client))
      chat.send(vim.trim("/explain " .. call.text))
    end)
  end,
  chat = function(call)
    local chat, client = require("fimble.chat"), client_module.of(call.buf)
    chat.open(call.range > 0 and client and selection(call, client) or nil)
    if call.text == "/clear" then
      chat.clear()
    elseif call.text ~= "" then
      chat.send(call.text)
    end
  end,
  toggle = function()
    local suggestions = require("fimble.suggestions")
    suggestions.enable(not suggestions.enabled())
    vim.notify("fimble: suggestions are " .. (suggestions.enabled() and "on." or "off."))
    vim.cmd.redrawstatus()
  end,
  status = function(call)
    with_client(call, function(client)
      vim.notify(table.concat(require("fimble.status").lines(client), "\n"))
    end)
  end,
  prompt = function(call)
    with_client(call, function(client)
      require("fimble.reports").prompt(client, call.buf)
    end)
  end,
  doctor = function()
    require("fimble.reports").doctor()
  end,
  restart = function()
    client_module.restart()
  end,
  accept = function()
    require("fimble.preview").accept()
  end,
  discard = function()
    require("fimble.preview").discard()
  end,
  stop = function()
    local edits, chat = require("fimble.edits").stop(), require("fimble.chat").stop()
    if not edits and not chat then
      vim.notify("fimble: nothing is being made.")
    end
  end,
}

---@return string[]
local function names()
  local found = vim.tbl_keys(COMMANDS)
  table.sort(found)
  return found
end

--- Runs :Fimble.
---@param given vim.api.keyset.create_user_command.command_args
function M.run(given)
  local name, text = given.args:match("^%s*(%S*)%s*(.-)%s*$")
  local command = COMMANDS[name]
  if not command then
    local said = name == "" and "fimble: what should be done? " or ("fimble: no %s; "):format(name)
    vim.notify(said .. "one of " .. table.concat(names(), ", ") .. ".", vim.log.levels.ERROR)
    return
  end
  command({
    text = text,
    buf = vim.api.nvim_get_current_buf(),
    range = given.range,
    line1 = given.line1,
    line2 = given.line2,
  })
end

--- Names behind a chat's message, as the server completes them.
---@param text string
---@return string[]
local function message_names(text)
  local client = client_module.any(0)
  local answer = client and client:request_sync("fimble/chatComplete", { text = text }, 2000)
  local word = text:match("%S*$")
  if not answer or not answer.result then
    return {}
  end
  local front = text:sub(1, vim.str_byteindex(text, "utf-16", answer.result.start))
  local kept = #text - #word
  return vim.tbl_map(function(item)
    return (front .. item.text):sub(kept + 1)
  end, answer.result.items)
end

--- Completes :Fimble's arguments.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local name, text = line:match("^.-Fimble%s+(%S+)%s+(.*)$")
  if name == "chat" or name == "explain" then
    return message_names(text)
  elseif name then
    return {}
  end
  return vim.tbl_filter(function(each)
    return vim.startswith(each, lead)
  end, names())
end

return M
