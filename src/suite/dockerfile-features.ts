import { DockerfileParser, From, type Instruction } from 'dockerfile-ast';
import { z } from 'zod';
import { parseForeignJson } from '../base/parse-json.ts';
import { flagsOf } from './dockerfile.ts';

/**
 * What interprets Dockerfiles on an engine. `classic`: its own builder without BuildKit. `older`: BuildKit as
 * in engines before 23. `current`: a frontend that supports all that authors may write.
 */
export type Frontend = 'classic' | 'older' | 'current';

/** Something that a Dockerfile uses and that a frontend does not have. */
export interface UnmetNeed {
  /** From 1. */
  line: number;
  message: string;
}

/** The image that the `# syntax=` line of a Dockerfile names. */
export function namedFrontend(dockerfile: string): string | undefined {
  return /^#\s*syntax\s*=\s*(\S+)/im.exec(dockerfile)?.[1];
}

/** Flags by the oldest frontend that has them. */
const flags: Readonly<Record<string, Readonly<Record<string, Frontend>>>> = {
  RUN: { mount: 'older', network: 'older', security: 'older' },
  COPY: { chmod: 'older', parents: 'current', exclude: 'current' },
  ADD: {
    chmod: 'older',
    checksum: 'current',
    'keep-git-dir': 'current',
    unpack: 'current',
    exclude: 'current',
  },
};

const needed = {
  older: 'needs BuildKit: install docker buildx beside the docker CLI',
  current: "needs Docker 23, or the image that the file's # syntax= line names",
} as const;

/** What a Dockerfile uses and a frontend does not have, after {@link plainDockerfile}. */
export function unmetNeeds(text: string, frontend: Frontend): UnmetNeed[] {
  if (frontend === 'current') return [];
  return DockerfileParser.parse(text)
    .getInstructions()
    .flatMap((instruction) => {
      const keyword = instruction.getKeyword();
      const line = instruction.getRange().start.line + 1;
      const names = flagsOf(instruction).map((flag) => flag.getName());
      const unmet = names.flatMap((name) => {
        const oldest = flags[keyword]?.[name];
        if (oldest === undefined || oldest === 'classic' || oldest === frontend) return [];
        return [{ line, message: `${keyword} --${name} ${needed[oldest]}` }];
      });
      const isDocument = keyword !== 'RUN' && hasDocuments(instruction);
      if (isDocument) unmet.push({ line, message: `a here-document of ${keyword} ${needed.current}` });
      return unmet;
    });
}

export interface PlainDockerfile {
  text: string;
  /** What is done differently from what the author wrote. */
  notes: string[];
}

/**
 * A Dockerfile for a frontend without here-documents: those of RUN become commands for the shell, on the same
 * lines, and `--link`, which only saves work, is left out.
 */
export function plainDockerfile(text: string, frontend: Frontend): PlainDockerfile {
  if (frontend === 'current') return { text, notes: [] };
  const lines = text.split('\n');
  const notes = new Set<string>();
  const stages = new Map<string, readonly string[]>();
  let shell: readonly string[] = usualShell;
  let stage = '';
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const { start, end } = instruction.getRange();
    const keyword = instruction.getKeyword();
    if (instruction instanceof From) {
      shell = stages.get(instruction.getImage()?.toLowerCase() ?? '') ?? usualShell;
      stage = instruction.getBuildStage()?.toLowerCase() ?? '';
    }
    if (keyword === 'SHELL') shell = shellOf(instruction) ?? shell;
    stages.set(stage, shell);
    if (keyword === 'COPY' || keyword === 'ADD') {
      const [link] = flagsOf(instruction).filter((flag) => flag.getName() === 'link');
      if (link) {
        notes.add('COPY --link is done as COPY');
        lines[start.line] = (lines[start.line] ?? '').replace(/--link(=\S*)?\s/, '');
      }
    }
    if (keyword !== 'RUN' || !hasDocuments(instruction)) continue;
    notes.add(`here-documents of RUN are passed to ${shell.join(' ')}`);
    const given = flagsOf(instruction).map((flag) => `--${flag.getName()}=${flag.getValue() ?? ''} `);
    lines[start.line] = `RUN ${given.join('')}${JSON.stringify([...shell, scriptOf(instruction)])}`;
    lines.fill('#', start.line + 1, end.line + 1);
  }
  return { text: lines.join('\n'), notes: [...notes] };
}

const usualShell: readonly string[] = ['/bin/sh', '-c'];

/**
 * If a RUN step is only a here-document, its text is the script. Otherwise the shell reads the
 * here-documents.
 */
function scriptOf(instruction: Instruction): string {
  const text = instruction.getArgumentsContent() ?? '';
  const [first = '', ...rest] = text.split('\n');
  const [, indented] = /^<<(-?)["']?\w+["']?\s*$/.exec(first) ?? [];
  if (indented === undefined) return text;
  const body = rest.slice(0, -1).map((line) => (indented === '-' ? line.replace(/^\t+/, '') : line));
  if (!body[0]?.startsWith('#!')) return body.join('\n');
  // A script that names its interpreter (`#!`) becomes a file, which is executed.
  const file = '/tmp/.offsite-script';
  const end = 'OFFSITE_SCRIPT_END';
  return [`cat > ${file} <<'${end}'`, ...body, end, `chmod +x ${file} && ${file} && rm ${file}`].join('\n');
}

function shellOf(instruction: Instruction): readonly string[] | undefined {
  try {
    const words: unknown = parseForeignJson(instruction.getArgumentsContent() ?? '');
    return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The lines of ADD that may fetch something: an address, a git repository, or a variable that may be one. The
 * engine fetches it, on its machine's own network.
 *
 * @param triggers the instructions that images run in the builds that use them (ONBUILD)
 */
export function remoteAdds(text: string, triggers: readonly string[] = []): UnmetNeed[] {
  const instructionsOf = (part: string) =>
    // Between words, builders take these for blanks, and the parser does not.
    DockerfileParser.parse(part.replaceAll(/[\v\f]/g, ' ')).getInstructions();
  const own = instructionsOf(text);
  const of = (instruction: Instruction, line: number): UnmetNeed[] => {
    const keyword = instruction.getKeyword();
    const words = instruction.getArgumentsContent() ?? '';
    if (keyword === 'ONBUILD') return instructionsOf(words).flatMap((one) => of(one, line));
    return keyword === 'ADD' && sourcesOf(words).some((source) => !isPlainPath(source))
      ? [{ line, message: 'ADD may fetch an address' }]
      : [];
  };
  const inherited = triggers.flatMap(instructionsOf);
  return [
    ...own.flatMap((one) => of(one, one.getRange().start.line + 1)),
    ...inherited.flatMap((one) => of(one, 1)),
  ];
}

/** What is added. The text of a here-document is in the lines below, and fetches nothing. */
function sourcesOf(words: string): string[] {
  const [first = ''] = words.split('\n');
  if (!first.startsWith('['))
    return first
      .split(/\s+/)
      .slice(0, -1)
      .filter((word) => !word.startsWith('<<'));
  try {
    return z.array(z.string()).parse(parseForeignJson(first)).slice(0, -1);
  } catch {
    return [first];
  }
}

/** Without variables, quotes and colons, from which builders could make an address. */
function isPlainPath(source: string): boolean {
  return /^[\w./*?+@,~ -]+$/.test(source);
}

/** Ignores here-documents without a name: in `<< EOF`, builders read `<<` as an ordinary word. */
function hasDocuments(instruction: Instruction): boolean {
  const { getHeredocs } = instruction as unknown as { getHeredocs?(): { getName(): string }[] };
  return (getHeredocs?.call(instruction) ?? []).some((document) => document.getName() !== '');
}
