#include "hosts.hpp"

#include <algorithm>

#include "options.hpp"
#include "support.hpp"

namespace far::app {

namespace {

host parse_host(const std::string& text, const std::string& list) {
  std::size_t colon = text.rfind(':');
  host result{text.substr(0, colon), 0};
  bool plain = !result.name.empty() && result.name[0] != '-' &&
               result.name.find_first_not_of(
                   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                   "0123456789.-_") == std::string::npos;
  if (!plain)
    throw error(usage_error, "--hosts " + list + ": '" + text +
                                 "' is no host; write names or IPv4 addresses with commas "
                                 "between, such as node1,node2 or node1:4,node2:4");
  if (colon == std::string::npos) return result;
  auto ranks = parse_number(text.substr(colon + 1));
  if (!ranks || *ranks == 0 || *ranks > most_ranks)
    throw error(usage_error, "--hosts " + list + ": '" + text +
                                 "' has no number of ranks behind the colon; write " + result.name +
                                 ":4, or " + result.name + " alone for an equal share");
  result.ranks = static_cast<std::uint32_t>(*ranks);
  return result;
}

}  // namespace

std::vector<host> parse_hosts(const std::string& text) {
  std::vector<host> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = std::min(text.find(',', begin), text.size());
    result.push_back(parse_host(text.substr(begin, end - begin), text));
    begin = end + 1;
    auto same = [&](const host& other) { return other.name == result.back().name; };
    if (std::count_if(result.begin(), result.end(), same) > 1)
      throw error(usage_error, "--hosts " + text + ": '" + result.back().name +
                                   "' is there twice; write it once, with all of its ranks");
  }
  return result;
}

std::uint32_t place_ranks(std::vector<host>& hosts, std::uint32_t ranks, std::uint32_t per_host) {
  for (host& one : hosts)
    if (one.ranks == 0) one.ranks = per_host;
  bool limited = std::all_of(hosts.begin(), hosts.end(), [](const host& h) { return h.ranks; });
  std::uint64_t room = 0;
  for (const host& one : hosts) room += one.ranks;
  if (!limited) {
    if (room != 0)
      throw error(usage_error, "--hosts " + list_of(hosts) +
                                   ": some have a number of ranks and some have none; give all of "
                                   "them one, or add -N for the others");
    if (ranks == 0) return 0;
    auto n = static_cast<std::uint32_t>(hosts.size());
    for (std::uint32_t i = 0; i < n; ++i) hosts[i].ranks = ranks / n + (i < ranks % n);
  } else if (ranks > room) {
    throw error(usage_error, "-n " + std::to_string(ranks) + ": there is room for " +
                                 counted(room, "rank") + " on " + list_of(hosts) +
                                 " only; name more hosts, or let more ranks go to each");
  } else if (ranks != 0) {
    std::uint32_t left = ranks;
    for (host& one : hosts) left -= one.ranks = std::min(one.ranks, left);
  } else {
    ranks = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, most_ranks + 1));
  }
  std::erase_if(hosts, [](const host& one) { return one.ranks == 0; });
  return ranks;
}

std::string list_of(const std::vector<host>& hosts) {
  std::string text;
  for (const host& one : hosts)
    text +=
        (text.empty() ? "" : ",") + one.name + (one.ranks ? ":" + std::to_string(one.ranks) : "");
  return text;
}

}  // namespace far::app
