import stringWidth from 'string-width';
import { type Line, linesOf, needsBar, Printable, type Span, safeLine, type Value } from './printable.ts';

/** The space between columns, in terminal cells. */
const columnGap = 2;

/** The narrowest that a cell is cut to, in terminal cells. */
const narrowest = 6;

/**
 * Characters that are one cell wide and never part of another one. Almost all text has only these, and
 * `string-width` takes 40 ms for its first answer.
 */
const plain = /^[\x20-\x7e\xa1-\xac\xae-\u02ff\u2010-\u2027✓✗○]*$/;

const ellipsis: Span = { text: '…', ours: true };

export interface FittedColumn {
  /** Whether its cells are aligned at their right, as numbers are. */
  right?: boolean;
  /** Its cells lose their middle if the rows are too wide; the widest column first. */
  shrinks?: boolean;
}

/**
 * Rows in aligned columns. Each row begins with Offsite's own `lead`, and takes at most `width` terminal
 * cells with it. A cell is one line.
 */
export function fittedRows(
  columns: readonly FittedColumn[],
  rows: readonly (readonly Value[])[],
  { width, lead }: { width: number; lead: Value },
): Printable {
  return new Printable((redact) => {
    const before = linesOf(lead, redact).flat();
    const cells = rows.map((row) => row.map((value) => safeCell(linesOf(value, redact).flat())));
    const room = width - widthOf(before) - columnGap * (columns.length - 1);
    const widths = shrunk(
      columns,
      columns.map((_, index) => Math.max(0, ...cells.map((row) => widthOf(row[index] ?? [])))),
      room,
    );
    return cells.map((row) => {
      const fitted = row.map((cell, index) => withoutMiddle(cell, widths[index] ?? 0));
      return withoutEnd([...before, ...alignedRow(fitted, columns, widths)], width);
    });
  });
}

/** One line of at most `width` terminal cells. A longer one loses its end. */
export function fittedLine(value: Value, width: number): Printable {
  return new Printable((redact) => [withoutEnd(safeLine(linesOf(value, redact).flat()), width)]);
}

/** A value on one line, of at most `width` terminal cells. A longer one loses its middle. */
export function fittedName(value: Value, width: number): Printable {
  return new Printable((redact) => [withoutMiddle(safeCell(linesOf(value, redact).flat()), width)]);
}

export interface Flow {
  /** In terminal cells, like `indent` and `gap`. */
  width: number;
  /** The space before each line. */
  indent: number;
  /** The space between parts. */
  gap: number;
}

/** Puts parts next to one another, and on a further line where they do not fit. */
export function flowed(parts: readonly Value[], { width, indent, gap }: Flow): Printable {
  return new Printable((redact) => {
    const lines: Line[] = [];
    for (const part of parts) {
      const spans = safeCell(linesOf(part, redact).flat());
      const last = lines.at(-1);
      const isFitting = last !== undefined && widthOf(last) + gap + widthOf(spans) <= width;
      if (isFitting) lines[lines.length - 1] = [...last, space(gap), ...spans];
      else lines.push([space(indent), ...spans]);
    }
    return lines.map((line) => withoutEnd(safeLine(line), width));
  });
}

/**
 * Makes a cell safe as part of a line that begins with Offsite's own words. Call this before measuring its
 * width.
 */
export function safeCell(cell: Line): Line {
  return safeLine([{ text: 'a row', ours: true }, ...cell]).slice(1);
}

export function space(width: number): Span {
  return { text: ' '.repeat(Math.max(0, width)), ours: true };
}

/** In terminal cells. */
export function widthOf(line: Line): number {
  const all = line.map(({ text }) => text).join('');
  return plain.test(all) ? all.length : stringWidth(all);
}

/** Takes from the widest shrinking column until all fit into `room`. */
function shrunk(columns: readonly FittedColumn[], natural: readonly number[], room: number): number[] {
  const widths = [...natural];
  const sum = () => widths.reduce((total, width) => total + width, 0);
  for (let over = sum() - room; over > 0; over--) {
    const shrinking = widths.map((width, index) => (columns[index]?.shrinks ? width : 0));
    const widest = Math.max(...shrinking);
    if (widest <= narrowest) break;
    widths[shrinking.indexOf(widest)] = widest - 1;
  }
  return widths;
}

interface Character extends Span {
  width: number;
}

/** Made when it is first needed, which takes 15 ms. */
let segmenter: Intl.Segmenter | undefined;

function charactersOf(line: Line): Character[] {
  return line.flatMap((span): Character[] => {
    if (plain.test(span.text)) return span.text.split('').map((text) => ({ ...span, text, width: 1 }));
    segmenter ??= new Intl.Segmenter();
    return [...segmenter.segment(span.text)].map(({ segment }) => {
      return { ...span, text: segment, width: stringWidth(segment) };
    });
  });
}

/** A whole line, safe to print as it is. */
function withoutEnd(line: Line, width: number): Line {
  if (widthOf(line) <= width) return line;
  const cut = safeLine(spansOf([...head(charactersOf(line), width - 1), ...(width > 0 ? [ellipsis] : [])]));
  // What is left of its beginning may need a bar, for which a terminal this narrow has no room.
  return widthOf(cut) <= width ? cut : [];
}

function withoutMiddle(line: Line, width: number): Line {
  if (widthOf(line) <= width) return line;
  const characters = charactersOf(line);
  const end = Math.floor((width - 1) / 2);
  const tail = head(characters.toReversed(), end).toReversed();
  return spansOf([...head(characters, width - 1 - end), ...(width > 0 ? [ellipsis] : []), ...tail]);
}

/** Characters of one style and origin become one span again. */
function spansOf(characters: readonly Span[]): Line {
  const spans: Span[] = [];
  for (const { text, ours, style } of characters) {
    const last = spans.at(-1);
    if (last?.ours === ours && last.style === style)
      spans[spans.length - 1] = { ...last, text: last.text + text };
    else spans.push(style === undefined ? { text, ours } : { text, ours, style });
  }
  return spans;
}

/** As many characters as fit into `width` terminal cells. */
function head(characters: readonly Character[], width: number): Character[] {
  let used = 0;
  const over = characters.findIndex((character) => {
    used += character.width;
    return used > width;
  });
  return over === -1 ? [...characters] : characters.slice(0, over);
}

/** A column by its title; one of numbers is aligned at its right. */
type Column = string | { right: string };

/** Rows in aligned columns, below a line of titles. Titles may be foreign text too. */
export function table(columns: readonly Column[], rows: readonly (readonly Value[])[]): Printable {
  return new Printable((redact) => {
    const cell = (value: Value = '') => safeCell(linesOf(value, redact).flat());
    const titled = columns.map((column) => {
      return typeof column === 'string' ? { title: column } : { title: column.right, right: true };
    });
    const titles = titled.map(({ title }) => cell(title));
    const cells = [titles, ...rows.map((row) => columns.map((_, index) => cell(row[index])))];
    const widths = columns.map((_, index) => Math.max(...cells.map((row) => widthOf(row[index] ?? []))));
    const lines = cells.map((row) => alignedRow(row, titled, widths));
    // If one line has a bar before it, the other lines are indented to keep the columns aligned.
    return lines.some(needsBar) ? lines.map((line) => (needsBar(line) ? line : [space(2), ...line])) : lines;
  });
}

/** Its cells next to one another. Blanks at the end of a line are not printed. */
function alignedRow(row: readonly Line[], columns: readonly FittedColumn[], widths: readonly number[]): Line {
  return row.flatMap((cell, index) => {
    const spare = space((widths[index] ?? 0) - widthOf(cell));
    const aligned = columns[index]?.right ? [spare, ...cell] : [...cell, spare];
    return index === 0 ? aligned : [space(columnGap), ...aligned];
  });
}
