--- Texts to be read: what a prompt is made of, and what `fimble doctor` says.

local client_module = require("fimble.client")
local options = require("fimble.options")
local program = require("fimble.program")
local windows = require("fimble.windows")

local M = {}

--- A table of JSON, or nil for null.
---@param value any
---@return table?
local function object(value)
  return type(value) == "table" and value or nil
end

---@param result table what `fimble.showPrompt` answers
---@return string[]
local function prompt_lines(result)
  local lines = {} ---@type string[]
  local refusal = object(result.refusal)
  if refusal then
    vim.list_extend(lines, { ("No suggestion here: %s"):format(refusal.reason), "" })
  end
  if type(result.error) == "string" then
    vim.list_extend(lines, vim.split(result.error, "\n"))
  end
  for _, section in ipairs(result.sections) do
    local title = "## %s %s (%s, %d tokens)"
    table.insert(lines, title:format(section.kind, section.path, section.reason, section.tokens))
    vim.list_extend(lines, { "", "```" })
    vim.list_extend(lines, vim.split(section.text, "\r?\n"))
    vim.list_extend(lines, { "```", "" })
  end
  for _, item in ipairs(result.left_out) do
    table.insert(lines, ("- left out: %s: %s"):format(item.path, item.reason))
  end
  return lines
end

--- Shows what a suggestion at the cursor would be made from, or why there is none.
---@param client vim.lsp.Client
---@param buf integer
function M.prompt(client, buf)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local arguments = { vim.uri_from_bufnr(buf), params.position }
  client_module.execute(client, "fimble.showPrompt", arguments, function(problem, result)
    if problem then
      vim.notify("fimble: " .. problem, vim.log.levels.WARN)
    else
      windows.show("fimble://prompt", "markdown", prompt_lines(result))
    end
  end)
end

--- The command line that belongs to the server: the same program, another command.
---@param ... string
---@return string[]? command nil where there is no program
---@return string? problem
function M.program(...)
  local cmd = {} ---@type string[]
  for _, word in ipairs(options.current.cmd) do
    if word == "serve" then
      return program.command(vim.list_extend(cmd, { ... }))
    end
    table.insert(cmd, word)
  end
  return program.command({ "fimble", ... })
end

--- Shows what `fimble doctor` says of this machine.
function M.doctor()
  local cmd, problem = M.program("doctor")
  if not cmd then
    vim.notify("fimble: " .. problem, vim.log.levels.WARN)
    return
  end
  local buf = windows.show("fimble://doctor", "", { table.concat(cmd, " ") .. " …" })
  local ok, failure = pcall(vim.system, cmd, { text = true }, function(done)
    vim.schedule(function()
      if vim.api.nvim_buf_is_valid(buf) then
        windows.fill(buf, vim.split(vim.trim(done.stdout .. "\n" .. done.stderr), "\n"))
      end
    end)
  end)
  if not ok then
    windows.fill(buf, { "It could not be run: " .. tostring(failure) })
  end
end

return M
