--- Where the server's program is. Neovim's own search begins in the current folder on Windows, and
--- what lies there may have come with what is edited. Starts nothing.

local options = require("fimble.options")

local M = {}

--- What the search depends on.
---@class fimble.Surroundings
---@field path? string the environment variable PATH
---@field cwd string
---@field home string
---@field windows boolean

---@return fimble.Surroundings
local function surroundings()
  return {
    path = vim.env.PATH,
    cwd = vim.fn.getcwd(),
    home = vim.uv.os_homedir() or "",
    windows = vim.fn.has("win32") == 1,
  }
end

--- A path as it is compared: whole, without links, on Windows without upper case.
---@param path string
---@param around fimble.Surroundings
---@return string
local function compared(path, around)
  local real = vim.fs.normalize(vim.uv.fs_realpath(path) or path)
  return (around.windows and real:lower() or real) .. "/"
end

--- The folders that are being edited: the current one and its project, unless that is all of home.
---@param around fimble.Surroundings
---@return string[]
local function edited(around)
  local project = vim.fs.root(around.cwd, options.root_markers)
  local home = compared(around.home, around)
  local found = {} ---@type string[]
  for _, folder in ipairs({ around.cwd, project }) do
    local whole = compared(folder, around)
    if not vim.startswith(home, whole) then
      table.insert(found, whole)
    end
  end
  return found
end

---@param folder string
---@param around fimble.Surroundings
---@return boolean
local function is_absolute(folder, around)
  local drive = around.windows and folder:match("^%a:[/\\]") ~= nil
  return drive or folder:match("^[/\\]") ~= nil
end

--- The program of a name, by PATH; a path is somebody's own choice, and taken as it is.
---@param name string
---@param around? fimble.Surroundings
---@return string? path
---@return string? refused one that was passed over, since it lies in what is edited
function M.find(name, around)
  around = around or surroundings()
  if name:match(around.windows and "[/\\]" or "/") then
    return vim.fn.executable(name) == 1 and name or nil
  end
  local own = edited(around)
  local refused ---@type string?
  for _, folder in ipairs(vim.split(around.path or "", around.windows and ";" or ":")) do
    local path = is_absolute(folder, around) and vim.fn.exepath(folder .. "/" .. name) or ""
    local is_theirs = vim.iter(own):any(function(each)
      return vim.startswith(compared(folder, around), each)
    end)
    if path ~= "" and not is_theirs then
      return path
    end
    refused = refused or (path ~= "" and path or nil)
  end
  return nil, refused
end

--- A command with its program found.
---@param cmd string[]
---@return string[]? command nil where there is no program
---@return string? problem
function M.command(cmd)
  local path, refused = M.find(cmd[1])
  if path then
    return vim.list_extend({ path }, cmd, 2)
  elseif refused then
    return nil,
      refused
        .. " lies in the folder that is edited, and is not run."
        .. " If you trust it, name it by its path in setup's cmd."
  end
  return nil, cmd[1] .. " is not an executable program. Install fimble, or name it in setup's cmd."
end

--- The command of the server, for Neovim to run.
---@return string[]
function M.server()
  -- A path, also where there is none: for a name, Neovim would search by itself.
  return M.command(options.current.cmd) or { vim.fn.stdpath("data") .. "/no-fimble", "serve" }
end

return M
