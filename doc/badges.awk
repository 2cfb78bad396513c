# SPDX-License-Identifier: MIT
# Draws the badges of README.md: awk -f badges.awk LABEL TEXT COLOR
BEGIN {
  label = ARGV[1]; words = ARGV[2]; color = ARGV[3]
  left = 7 * length(label) + 14
  right = 7 * length(words) + 14
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"20\" font-family=\"sans-serif\" " \
         "font-size=\"12\" fill=\"#fff\" text-anchor=\"middle\">\n", left + right
  printf "<title>%s: %s</title>\n", label, words
  printf "<rect width=\"%d\" height=\"20\" fill=\"#444\"/>\n", left
  printf "<rect x=\"%d\" width=\"%d\" height=\"20\" fill=\"%s\"/>\n", left, right, color
  printf "<text x=\"%d\" y=\"14\">%s</text>\n", left / 2, label
  printf "<text x=\"%d\" y=\"14\">%s</text>\n", left + right / 2, words
  print "</svg>"
  exit
}
