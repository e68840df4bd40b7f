import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { EnvironmentSource } from '../suite/environment.ts';
import type { FileIssue } from '../suite/file-issues.ts';
import type { GivenEnvironment } from '../suite/load-environment.ts';
import { schemaProblems } from '../suite/schema-problems.ts';
import { Services } from '../suite/services.ts';
import type { CaseSource } from '../suite/suite-file.ts';
import type { taskFormats } from '../suite/tasks-source.ts';
import type { TaskDocument } from './document.ts';
import { Remarks } from './supported.ts';
import type { RowSpan } from './swe-bench/rows.ts';
import type { RowSetup } from './swe-bench/setup.ts';
import { issueAt, type TaskFolder } from './task-folder.ts';

export type TaskFormat = (typeof taskFormats)[number];

/** A task whose place is known, and which is not read yet. */
export interface FoundTask {
  /** The name of the task's folder, or of its row. It becomes the id of the case. */
  id: string;
  format: TaskFormat;
  /** The absolute path of its folder, or of the file that has it as a row. */
  place: string;
  row?: RowSpan;
  /** What the person who runs it names, if it is a row. */
  setup?: RowSetup;
  /** What a data set says of its files. */
  expected?: { digest: string; at: FileIssue };
  /** Something that a data set says of it. */
  remark?: FileIssue;
  /** Why it cannot be read. */
  problem?: FileIssue;
  /** Where it would have to be fetched from. */
  absent?: FileIssue;
}

/** The tasks at a path, none of which is read yet. */
export interface FoundTasks {
  /** In the order of their paths, or of their rows. */
  tasks: FoundTask[];
  /** What was found beside them, and is not a task. */
  notes: FileIssue[];
}

/** A task of any format, as a case. */
export interface Task extends TaskReading {
  /**
   * As a case of a suite file is after it was parsed. Its paths are absolute. The instruction is the variable
   * `instruction`, and the task's own tests grade.
   */
  entry: CaseSource;
}

/** What the readers of a task's parts collect for its case. */
export interface TaskReading {
  /** The file that defines the task. Nothing can be below it. */
  document: TaskDocument;
  remarks: Remarks;
  /**
   * What stands at the paths of the case where no file can be, below the file that defines the task: a text,
   * or folders, of which the later ones replace files of the earlier ones.
   */
  named: Map<string, string | PlacedFolder[]>;
  /** Where the task says what stands at a key of the case, by the path of the key. */
  places: Map<string, FileIssue>;
  /** The files and folders that grade and solve the task. */
  own: string[];
  /** What no case can have. A task with obstacles is no case anyway. */
  issues: FileIssue[];
}

/** The reading of a task that is a folder. */
export interface FolderReading extends TaskReading {
  folder: TaskFolder;
}

/** A folder or file on the host, and its path in the container. */
export interface PlacedFolder {
  from: string;
  to: string;
  /** Patterns as in a `.gitignore` of the task's folder: `filesBelow()` leaves these files out. */
  ignored: readonly string[];
}

/** Where something is in the case. */
export type Keys = readonly (string | number)[];

export function taskReading(document: TaskDocument): TaskReading {
  const remarks = new Remarks();
  return { document, remarks, named: new Map(), places: new Map(), own: [], issues: [] };
}

/** An issue with a key of the case, where the task says what stands there. */
export function caseIssue(
  { document, places }: TaskReading,
  keys: readonly PropertyKey[],
  message: string,
): FileIssue {
  const known = keys.map((_, index) => places.get(keys.slice(0, keys.length - index).join('.')));
  const at = known.find((one) => one !== undefined);
  return at ? { ...at, message } : issueAt(document.file, [keys.join('.'), message].join(': '));
}

/** Files and folders with their paths in the sandbox. */
export function placedIn({ document, named }: TaskReading, keys: Keys, placed: readonly PlacedFolder[]) {
  const folders: Record<string, string> = {};
  const files: Record<string, string> = {};
  for (const one of placed) {
    if (!statSync(one.from).isDirectory()) {
      files[one.to] = one.from;
      continue;
    }
    const path = join(document.file, ...keys.map(String), one.to);
    const known = named.get(path);
    named.set(path, [...(Array.isArray(known) ? known : []), one]);
    folders[one.to] = path;
  }
  return { folders, files };
}

/** The path of a text that the case names as a file. */
export function textIn({ document, named }: TaskReading, keys: Keys, text: string): string {
  const path = join(document.file, ...keys.map(String));
  named.set(path, text);
  return path;
}

/** Folders that Harbor makes for agents, tests and artifacts. Any user may write to them. */
const logFolders = ['/logs/agent', '/logs/verifier', '/logs/artifacts'];

/** A container beside the main one, as a suite file says it before that is checked. */
export interface GivenService {
  name: string;
  /** Where it is defined. */
  place: FileIssue;
  source: z.input<typeof Services>[string];
  /** They may have any path, also one that no suite can name. */
  volumes: string[];
}

/** An environment of the case. What a suite would refuse of it is reported. */
export function environmentIn(
  { document, places, issues }: TaskReading,
  keys: Keys,
  { services: given, files, folders, ...own }: TaskEnvironment,
): GivenEnvironment {
  const { workdir, user, env, build } = own;
  const report = (of: string, { error }: { error?: z.ZodError | undefined }) => {
    for (const { path, message } of error ? schemaProblems(error) : [])
      issues.push(issueAt(document.file, `${[of, ...path].join('.')}: ${message}`));
  };
  report(
    keys.includes('tests') ? 'verifier.environment' : 'environment',
    EnvironmentSource.safeParse({ workdir, user, env }, { reportInput: true }),
  );
  if (build) places.set([...keys, 'build'].join('.'), issueAt(build.dockerfile, ''));
  const sources = Object.fromEntries(given.map(({ name, source }) => [name, source]));
  const checked = Services.safeParse(sources, { reportInput: true });
  report('services', checked);
  const services = given.map(({ name, place, volumes }) => {
    places.set([...keys, 'services', name].join('.'), place);
    return [name, { ...checked.data?.[name], ...(volumes.length > 0 && { volumes }) }];
  });
  // In the order in which an imported suite has them.
  return {
    ...own,
    ...(services.length > 0 && { services: Object.fromEntries(services) }),
    files,
    folders,
    writable: logFolders,
  };
}

/** An environment whose services are not checked yet. */
export type TaskEnvironment = Omit<GivenEnvironment, 'services'> & { services: readonly GivenService[] };
