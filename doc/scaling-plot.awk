# SPDX-License-Identifier: MIT
# Draws tables of multiples of one GPU as an SVG, a panel for each table: `make -C doc plots`.
#
# usage: awk -f scaling-plot.awk groups-scaling.txt
#
# Lines of the input; the fields are separated by tabs:
#
#     machine TEXT          at the bottom of the picture
#     GPUs N...             the columns of all panels
#     panel TITLE           begins a panel
#     NAME MULTIPLE...      a line of the panel, "-" for a point that was not measured
#     # TEXT                a comment

BEGIN {
  FS = "\t"
  # no pair of these colors is hard to tell apart for color-blind readers
  colors = split("#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9", color, " ")
  # in pixels: the plot of a panel, its margins, and a line of text
  wide = 250; high = 250; left = 60; right = 170; above = 50; below = 60; line = 17
}

function fail(why) {
  print "scaling-plot: line " FNR ": " why >"/dev/stderr"
  failed = 1
  exit 1
}
function escaped(words) {
  gsub(/&/, "\\&amp;", words)
  gsub(/</, "\\&lt;", words)
  return words
}

{ sub(/\r$/, "") }
/^#/ || /^$/ { next }
$1 == "machine" { machine = $2; next }
$1 == "GPUs" {
  columns = NF - 1
  for (c = 1; c <= columns; c++) {
    if ($(c + 1) !~ /^[0-9]+$/ || (c > 1 && $(c + 1) + 0 <= gpus[c - 1]))
      fail("numbers of GPUs are integers that increase")
    gpus[c] = $(c + 1) + 0
  }
  if (columns > 0)
    most = gpus[columns]
  next
}
$1 == "panel" { title[++panels] = $2; next }
{
  if (!panels || !columns)
    fail("a line of a panel comes after \"GPUs\" and \"panel\"")
  if (NF != columns + 1)
    fail("the line has not " columns " numbers")
  if (!($1 in color_of))
    color_of[$1] = color[known++ % colors + 1]
  l = ++lines[panels]
  name[panels, l] = $1
  for (c = 1; c <= columns; c++) {
    if ($(c + 1) !~ /^([0-9]+(\.[0-9]+)?|-)$/)
      fail("\"" $(c + 1) "\" is not a number")
    value[panels, l, c] = $(c + 1)
    if ($(c + 1) + 0 > most)
      most = $(c + 1) + 0
  }
}

# ---- the picture ----

function text(x, y, anchor, more, words) {
  printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, more, escaped(words)
}
function x_of(n) { return left_edge + wide * (least == most_gpus ? 0.5 : (n - least) / (most_gpus - least)) }
function y_of(multiple) { return top_edge + high * (1 - multiple / top) }

function axes(p,    c, step, y) {
  text(left_edge, top_edge - 22, "start", " font-weight=\"bold\"", title[p])
  step = top > 10 ? 2 : 1
  for (y = 0; y <= top; y += step) {
    printf "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/>\n", left_edge, y_of(y), left_edge + wide
    text(left_edge - 8, y_of(y) + 5, "end", "", y)
  }
  for (c = 1; c <= columns; c++) {
    printf "<path d=\"M%.1f %.1fv5\" stroke=\"#333\"/>\n", x_of(gpus[c]), y_of(0)
    text(x_of(gpus[c]), y_of(0) + 21, "middle", "", gpus[c])
  }
  printf "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#333\"/>\n",
    left_edge, y_of(top), y_of(0), left_edge + wide
  text(left_edge + wide / 2, y_of(0) + 43, "middle", "", "number of GPUs")
  y = top_edge + high / 2
  text(left_edge - 36, y, "middle", sprintf(" transform=\"rotate(-90 %.1f %.1f)\"", left_edge - 36, y),
       "rate, multiple of one GPU")
}

# A label at the right end of a line, for later.
function add_label(y, fill, words) {
  labels++
  label_y[labels] = y
  label_fill[labels] = fill
  label_words[labels] = words
}
# From the highest to the lowest; each is at least a line of text below the one before.
function print_labels(    printed, i, best, done, y) {
  y = -line
  for (printed = 0; printed < labels; printed++) {
    best = 0
    for (i = 1; i <= labels; i++)
      if (!(i in done) && (!best || label_y[i] < label_y[best]))
        best = i
    done[best]
    y = label_y[best] > y + line ? label_y[best] : y + line
    text(left_edge + wide + 12, y + 5, "start", " fill=\"" label_fill[best] "\"", label_words[best])
  }
  labels = 0
}

function series(p, l,    c, path, last, fill) {
  fill = color_of[name[p, l]]
  for (c = 1; c <= columns; c++)
    if (value[p, l, c] != "-") {
      path = path (last ? "L" : "M") sprintf("%.1f %.1f", x_of(gpus[c]), y_of(value[p, l, c]))
      last = c
    }
  if (!last)
    return
  printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", path, fill
  for (c = 1; c <= columns; c++)
    if (value[p, l, c] != "-")
      printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n",
        x_of(gpus[c]), y_of(value[p, l, c]), fill
  add_label(y_of(value[p, l, last]), fill, value[p, l, last] " " name[p, l])
}

function panel(p,    l) {
  left_edge = left + (p - 1) % 2 * (left + wide + right)
  top_edge = above + int((p - 1) / 2) * (above + high + below)
  axes(p)
  printf "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#666\" stroke-dasharray=\"5 4\"/>\n",
    x_of(least), y_of(least), x_of(most_gpus), y_of(most_gpus)
  add_label(y_of(most_gpus), "#666", most_gpus " ideal")
  for (l = 1; l <= lines[p]; l++)
    series(p, l)
  print_labels()
}

END {
  if (failed)
    exit 1
  if (!panels || machine == "")
    fail("there is no panel, or no machine")
  least = gpus[1]
  most_gpus = gpus[columns]
  top = int(most)
  if (top < most)
    top++
  width = (left + wide + right) * (panels > 1 ? 2 : 1)
  height = (above + high + below) * int((panels + 1) / 2) + 30
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" " \
         "font-family=\"sans-serif\" font-size=\"14\" fill=\"#222\">\n", width, height, width, height
  printf "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height
  for (p = 1; p <= panels; p++)
    panel(p)
  text(left, height - 16, "start", "", machine)
  print "</svg>"
}
