--- :checkhealth fimble

local client_module = require("fimble.client")
local options = require("fimble.options")
local reports = require("fimble.reports")

local M = {}

local health = vim.health

local function check_editor()
  health.start("Neovim")
  if vim.fn.has("nvim-0.11") == 0 then
    health.error("Neovim is older than 0.11.", "Install 0.11 or newer.")
  elseif vim.lsp.inline_completion then
    health.ok("0.12 or newer: suggestions are drawn by vim.lsp.inline_completion")
  else
    health.ok("0.11: suggestions are drawn by fimble")
  end
end

---@param cmd string[]
---@return vim.SystemCompleted?
local function run(cmd)
  local ok, process = pcall(vim.system, cmd, { text = true })
  return ok and process:wait(60000) or nil
end

---@param check { name: string, status: string, detail: string, next_step: string }
local function report(check)
  local text = ("%s: %s"):format(check.name, check.detail)
  if check.status == "fail" then
    health.error(text, check.next_step)
  elseif check.status == "warn" then
    health.warn(text, check.next_step)
  else
    health.ok(text)
  end
end

local function check_program()
  health.start("fimble")
  local _, problem = require("fimble.program").command(options.current.cmd)
  local asked = reports.program("--version")
  if problem or not asked then
    health.error(problem or "The command line of the server's program is not found.")
    return
  end
  local version = run(asked)
  if not version or version.code ~= 0 then
    health.error(asked[1] .. " does not run.", version and vim.trim(version.stderr) or nil)
    return
  end
  health.ok(("%s; the plugin is %s"):format(vim.trim(version.stdout), require("fimble").version))
  local command = reports.program("doctor", "--json")
  local doctor = command and run(command)
  local ok, found = pcall(vim.json.decode, doctor and doctor.stdout or "")
  if not ok then
    health.warn("fimble doctor gave no report.", ":Fimble doctor shows what it says.")
    return
  end
  for _, check in ipairs(found.checks) do
    report(check)
  end
end

local function check_servers()
  health.start("Servers")
  local clients = vim.lsp.get_clients({ name = "fimble" })
  if #clients == 0 then
    health.warn(
      "No server runs.",
      'Call require("fimble").setup({}) or vim.lsp.enable("fimble"), and open a file.'
    )
  end
  for _, client in ipairs(clients) do
    local status = require("fimble.status").of(client.id)
    local text = ("%s: %s"):format(client.root_dir or "no folder", status and status.state or "?")
    if status and status.state == "error" then
      health.error(text .. ": " .. status.message, ":Fimble doctor")
    else
      health.ok(text)
    end
  end
end

local function check_keys()
  health.start("Keys")
  for action, key in pairs(options.current.keys) do
    if key then
      health.ok(("%s: %s"):format(action, key))
    end
  end
  local buf = vim.fn.bufnr("#")
  if buf ~= -1 and client_module.of(buf) then
    local key = options.current.keys.accept
    local map = key
      and vim.api.nvim_buf_call(buf, function()
        return vim.fn.maparg(key, "i", false, true)
      end)
    if map and not vim.startswith(map.desc or "", "fimble: ") then
      health.warn(
        key .. " was mapped by something else after fimble, which never sees it.",
        "Set keys.accept to another key, or map <Plug>(fimble-accept)."
      )
    end
  end
end

function M.check()
  check_editor()
  check_program()
  check_servers()
  check_keys()
end

return M
