import { posix } from 'node:path';
import {
  type Dockerfile,
  DockerfileParser,
  Entrypoint,
  From,
  type Instruction,
  type ParserDirective,
  Workdir,
} from 'dockerfile-ast';

/** A change of one line of a Dockerfile, from one column to another. */
interface Edit {
  line: number;
  from: number;
  to: number;
  text: string;
}

/** An image that a Dockerfile uses. */
export interface UsedImage {
  /** With the values of its arguments. */
  name: string;
  /** From 1. */
  line: number;
}

export interface DockerfileProblem {
  /** From 1. */
  line: number;
  message: string;
}

const keywords = new Set(
  (
    'ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ' +
    'ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR'
  ).split(' '),
);

/** What is wrong with a Dockerfile before anything is built; the builder finds the rest. */
export function dockerfileProblems(text: string, target: string | undefined): DockerfileProblem[] {
  const file = DockerfileParser.parse(text);
  const unknown = file.getInstructions().filter((one) => !keywords.has(one.getKeyword()));
  if (unknown.length > 0) {
    return unknown.map((one) => ({
      line: one.getRange().start.line + 1,
      message: `unknown instruction: ${one.getInstruction()}`,
    }));
  }
  const names = stageNames(file);
  if (names.length === 0) return [{ line: 1, message: 'it has no FROM' }];
  if (target === undefined || names.includes(target.toLowerCase()) || Number(target) < names.length)
    return [];
  const known = names.filter((name) => !/^\d+$/.test(name));
  const stages = known.length === 0 ? 'no stage has a name' : `its stages are ${known.join(', ')}`;
  return [{ line: 1, message: `it has no stage ${target}: ${stages}` }];
}

/**
 * The settings that the lines of a Dockerfile give its image. The settings of the images that it builds on
 * are not known.
 */
export interface ImageSettings {
  /** The line, from 1, of an entrypoint that does more than start the command. */
  entrypointLine?: number | undefined;
  /** The working folder, if the lines alone determine it. */
  workdir?: { path: string; line: number } | undefined;
}

export function imageSettings(text: string, target: string | undefined): ImageSettings {
  const file = DockerfileParser.parse(text);
  const names = stageNames(file);
  const stages: ImageSettings[] = [];
  for (const instruction of file.getInstructions()) {
    const line = instruction.getRange().start.line + 1;
    const words = instruction.getArgumentsContent() ?? '';
    const stage = stages.at(-1);
    if (instruction instanceof From)
      stages.push({ ...stages[names.indexOf(instruction.getImage()?.toLowerCase() ?? '')] });
    else if (stage && instruction instanceof Entrypoint)
      stage.entrypointLine = startsOnly.test(words) ? undefined : line;
    else if (stage && instruction instanceof Workdir) {
      const path = posix.resolve(stage.workdir?.path ?? '?', words);
      const isKnown = /^[\w/.-]+$/.test(words) && (words.startsWith('/') || stage.workdir !== undefined);
      stage.workdir = isKnown ? { path, line } : undefined;
    }
  }
  const stage = target === undefined ? -1 : names.indexOf(target.toLowerCase());
  return stages.at(stage === -1 && target !== undefined ? Number(target) : stage) ?? {};
}

/** No program, or an init program, which only starts another program and reaps orphaned processes. */
const startsOnly = /^\[\s*(?:"(?:[\w/.-]*\/)?(?:tini|dumb-init|catatonit)"(?:\s*,\s*"-[^"]*")*\s*)?\]$/;

/** The images that a Dockerfile builds on or copies from, without its own stages. */
export function usedImages(text: string, args: Readonly<Record<string, string>>): UsedImage[] {
  return imageUses(DockerfileParser.parse(text), args).map(({ name, edit }) => ({
    name,
    line: edit.line + 1,
  }));
}

export interface Rewriting {
  args: Readonly<Record<string, string>>;
  /** The image to use in place of one that the Dockerfile names. */
  imageFor(name: string): string;
  /** Whether the engine has the frontend that a `# syntax=` line names. */
  hasFrontend(name: string): boolean;
  /** A secret for all RUN steps, and variables that hold its path. Undefined if there is none. */
  secret?: { id: string; variables: readonly string[] } | undefined;
}

export interface Rewritten {
  text: string;
  /** The frontends whose `# syntax=` lines were removed. */
  removedFrontends: string[];
  /** Gives the author's line for a line of the text, from 1. */
  lineOf(line: number): number;
}

/** A Dockerfile as Offsite builds it. */
export function rewritten(text: string, { args, imageFor, hasFrontend, secret }: Rewriting): Rewritten {
  const file = DockerfileParser.parse(text);
  const lines = text.split('\n');
  const edits = imageUses(file, args).flatMap(({ name, edit }): Edit[] => {
    const image = imageFor(name);
    return image === name ? [] : [{ ...edit, text: image }];
  });
  // Builders pass over a line for a shell, and read directives after it.
  if (text.startsWith('#!')) edits.push({ line: 0, from: 1, to: 2, text: ' ' });
  const removedFrontends: string[] = [];
  for (const directive of file.getDirectives()) {
    const name = directive.getValue();
    if (directive.getName().toLowerCase() !== 'syntax' || hasFrontend(imageFor(name))) continue;
    removedFrontends.push(name);
    edits.push(...withoutDirective(directive, file));
  }
  /** The lines, from 1, that are added to the text. */
  const added: number[] = [];
  const insert = (line: number, at: number, part: string) =>
    edits.push({ line, from: at, to: at, text: part });
  if (secret)
    for (const instruction of file.getInstructions()) {
      const keyword = instruction.getKeyword();
      if (keyword === 'RUN') {
        const { end } = instruction.getInstructionRange();
        insert(end.line, end.character, secretMount(secret.id));
      }
      if (keyword === 'FROM') {
        const { line } = instruction.getRange().end;
        insert(line, lines[line]?.length ?? 0, `\n${argLine(secret)}`);
        added.push(line + 2 + added.length);
      }
    }
  for (const { line, from, to, text: part } of edits.toSorted((a, b) => b.line - a.line || b.from - a.from)) {
    const whole = lines[line] ?? '';
    lines[line] = `${whole.slice(0, from)}${part}${whole.slice(to)}`;
  }
  return {
    text: lines.join('\n'),
    removedFrontends,
    lineOf: (line) => line - added.filter((position) => position <= line).length,
  };
}

/** The text after the keyword RUN that mounts a secret in a step. */
export function secretMount(id: string): string {
  return ` --mount=type=secret,id=${id},mode=0444`;
}

function argLine({ id, variables }: NonNullable<Rewriting['secret']>): string {
  return `ARG ${variables.map((name) => `${name}=/run/secrets/${id}`).join(' ')}`;
}

/** Directives end at the first other line, so one that follows takes the place of the removed one. */
function withoutDirective(removed: ParserDirective, file: Dockerfile): Edit[] {
  const whole = ({ start, end }: Range, text: string) => ({
    line: start.line,
    from: 0,
    to: end.character,
    text,
  });
  const next = file.getDirectives().find((one) => one.getName().toLowerCase() === 'escape');
  if (!next) return [whole(removed.getRange(), '#')];
  return [whole(removed.getRange(), `# escape=${next.getValue()}`), whole(next.getRange(), '#')];
}

interface ImageUse {
  name: string;
  edit: Omit<Edit, 'text'>;
}

function imageUses(file: Dockerfile, args: Readonly<Record<string, string>>): ImageUse[] {
  const values = initialArgs(file, args);
  const earlier = new Set<string>();
  const uses: ImageUse[] = [];
  const isOwn = (name: string) => name === '' || name === 'scratch' || earlier.has(name.toLowerCase());
  for (const instruction of file.getInstructions()) {
    const keyword = instruction.getKeyword();
    if (keyword === 'FROM') {
      const from = instruction as From;
      const range = from.getImageRange();
      const name = expanded(from.getImage() ?? '', values);
      if (range && !isOwn(name)) uses.push({ name, edit: onOneLine(range) });
      const stage = from.getBuildStage();
      if (stage !== null) earlier.add(stage.toLowerCase());
      continue;
    }
    if (keyword !== 'COPY' && keyword !== 'RUN') continue;
    for (const flag of flagsOf(instruction)) {
      const range = flag.getValueRange();
      const value = flag.getValue() ?? '';
      // In a flag of RUN, `from` is one of several options: `--mount=type=bind,from=image,target=/x`.
      const found = keyword === 'COPY' ? /^(.*)$/.exec(value) : /(?:^|,)from=([^,]*)/.exec(value);
      const name = found?.[1] ?? '';
      const isFrom = flag.getName() === (keyword === 'COPY' ? 'from' : 'mount');
      if (!range || !isFrom || isOwn(name) || /^\d+$/.test(name)) continue;
      const edit = onOneLine(range);
      const at = edit.from + (found?.index ?? 0) + (found?.[0].length ?? 0) - name.length;
      uses.push({ name, edit: { ...edit, from: at, to: at + name.length } });
    }
  }
  return uses;
}

interface Flag {
  getName(): string;
  getValue(): string | null;
  getValueRange(): Range | null;
}

export function flagsOf(instruction: Instruction): Flag[] {
  const { getFlags } = instruction as unknown as { getFlags?(): Flag[] };
  return getFlags?.call(instruction) ?? [];
}

type Range = NonNullable<ReturnType<From['getImageRange']>>;

function onOneLine({ start, end }: Range): Omit<Edit, 'text'> {
  return { line: start.line, from: start.character, to: end.character };
}

/** The arguments before the first FROM, which the names of images may use. */
function initialArgs(file: Dockerfile, args: Readonly<Record<string, string>>): Map<string, string> {
  const values = new Map<string, string>();
  for (const arg of file.getInitialARGs()) {
    const property = arg.getProperty();
    if (!property) continue;
    const name = property.getName();
    values.set(name, args[name] ?? expanded(property.getValue() ?? '', values));
  }
  return values;
}

/** Replaces `$name`, `${name}`, `${name:-default}` and `${name:+alternative}`. */
function expanded(text: string, values: ReadonlyMap<string, string>): string {
  const pattern = /\$(?:\{(\w+)(?::([-+])([^}]*))?\}|(\w+))/g;
  return text.replace(pattern, (_, braced?: string, operator?: string, word = '', bare?: string) => {
    const value = values.get(braced ?? bare ?? '') ?? '';
    if (operator === '-') return value === '' ? word : value;
    if (operator === '+') return value === '' ? '' : word;
    return value;
  });
}

/** In lower case; a stage without a name has its number. */
function stageNames(file: Dockerfile): string[] {
  return file.getFROMs().map((from, index) => from.getBuildStage()?.toLowerCase() ?? String(index));
}
