// node stylua.cjs [--write] FILE…: names the files that are not formatted as stylua formats them.
// The settings are those of clients/nvim/stylua.toml, which this build of stylua does not read.
const fs = require("fs");
const { createRequire } = require("module");

const stylua = createRequire(`${process.cwd()}/`)("@johnnymorganz/stylua");

function formatted(text) {
  const config = stylua.Config.new();
  config.syntax = stylua.LuaVersion.LuaJIT;
  config.column_width = 100;
  config.indent_type = stylua.IndentType.Spaces;
  config.indent_width = 2;
  config.quote_style = stylua.QuoteStyle.AutoPreferDouble;
  return stylua.formatCode(text, config, undefined, stylua.OutputVerification.Full);
}

const write = process.argv[2] === "--write";
for (const file of process.argv.slice(write ? 3 : 2)) {
  const text = fs.readFileSync(file, "utf8");
  const wanted = formatted(text);
  if (text !== wanted) {
    console.log(file);
    process.exitCode = write ? 0 : 1;
    if (write) fs.writeFileSync(file, wanted);
  }
}
