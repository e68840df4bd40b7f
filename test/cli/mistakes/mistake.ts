/** A typical mistake, what is printed for it, and the exit code. */
export interface Mistake {
  mistake: string;
  /** Files of the project, in place of those of {@link soundProject}. */
  files?: Record<string, string>;
  /** Default: `run suite.yaml`. */
  args?: string[];
  /** The folder that it runs in, relative to the project. Default: the project. */
  from?: string;
  /**
   * All lines, except those that depend on the machine. `PROJECT` is the folder of the project, `HOME` the
   * one above it.
   */
  printed: string[];
  /** Default: 2. */
  exit?: number;
}

/** A project without a mistake. */
export const soundProject: Readonly<Record<string, string>> = {
  'suite.yaml': `suite: { id: s, prompt: "Do it." }
variants:
  - { model: m, harness: bash }
cases:
  - id: a
    verify: "true"
`,
  'offsite.yaml': `models:
  m: { scripted: script.yaml }
profiles:
  worker: { run: "true" }
sandboxes:
  roomy: { memory: 3g }
`,
  'script.yaml': 'turns: [{ text: Done. }]\n',
};

/** A file of the sound project in which one text is another one. */
export function changed(file: keyof typeof soundProject, was: string, is: string): Record<string, string> {
  const sound = soundProject[file] ?? '';
  if (!sound.includes(was)) throw new Error(`${file} has no ${was}`);
  return { [file]: sound.replace(was, () => is) };
}

/** The line that follows what is wrong with a command line. */
export const help = 'Run it with --help to see commands and options.';
