// clustersim catalog: what hardware and models are known, and where each figure comes from.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "scenarios/cli/command.hpp"

namespace clustersim::cli {
namespace {

struct Arguments {
  std::string name;
  std::vector<std::string> files;
};

std::string listing(const Catalog& catalog) {
  const std::vector<Catalog::Entry> entries = catalog.entries();
  std::size_t width = 0;
  for (const Catalog::Entry& entry : entries) width = std::max(width, entry.name.size());
  std::string text;
  std::string kind;
  for (const Catalog::Entry& entry : entries) {
    if (entry.kind != kind) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", entry.kind);
    kind = entry.kind;
    text += fmt::format("  {:<{}}  {}\n", entry.name, width, entry.title);
  }
  return text;
}

void catalog(const Arguments& arguments) {
  Catalog known = Catalog::built_in();
  for (const std::string& file : arguments.files) known.add_file(file);
  std::string text = arguments.name.empty() ? listing(known) : known.describe(arguments.name);
  if (!text.ends_with('\n')) text += '\n';
  print(text);
}

}  // namespace

void add_catalog(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      line.app.add_subcommand("catalog", "List GPUs, NICs, switches, nodes and models, or show one with its sources");
  command->add_option("NAME", arguments->name, "One entry");
  command->add_option("--file", arguments->files, "A catalog file of your own to read first; repeatable")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->callback([&line, arguments] { line.action = [arguments] { catalog(*arguments); }; });
}

}  // namespace clustersim::cli
