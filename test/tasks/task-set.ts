import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { FileIssue } from '../../src/suite/file-issues.ts';
import { readTask } from '../../src/tasks/read-task.ts';
import type { FoundTask } from '../../src/tasks/task.ts';

/** A folder of tasks that a test writes. */
export interface TaskSetFolder extends Disposable {
  folder: string;
  /** Writes a file below the folder, and returns its path. */
  write(name: string, content: string | Uint8Array): string;
  link(name: string, target: string): void;
  /** Writes the smallest task of Harbor, with these files in place of its own; null leaves one out. */
  harbor(id: string, files?: Record<string, string | null>): FoundTask;
  terminalBench(id: string, files?: Record<string, string | null>): FoundTask;
}

const smallestHarbor = {
  'task.toml': 'version = "1.0"\n[agent]\ntimeout_sec = 60\n[environment]\nnetwork_mode = "no-network"\n',
  'instruction.md': 'Write a file.\n',
  'environment/Dockerfile': 'FROM debian\n',
  'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt\n',
};

const smallestTerminalBench = {
  'task.yaml': 'instruction: Write a file.\ndifficulty: easy\n',
  'docker-compose.yaml': 'services:\n  client:\n    build: { dockerfile: Dockerfile }\n',
  Dockerfile: 'FROM debian\n',
  'run-tests.sh': 'pytest -rA /tests\n',
};

export function openTaskSet(): TaskSetFolder {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-tasks-'));
  const write = (name: string, content: string | Uint8Array) => {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  };
  const writeTask = (id: string, files: Record<string, string | null>) => {
    mkdirSync(join(folder, id), { recursive: true });
    for (const [name, content] of Object.entries(files)) if (content !== null) write(join(id, name), content);
    return join(folder, id);
  };
  return {
    folder,
    write,
    link(name, target) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      symlinkSync(target, join(folder, name));
    },
    harbor: (id, files = {}) => ({
      id,
      format: 'harbor',
      place: writeTask(id, { ...smallestHarbor, ...files }),
    }),
    terminalBench: (id, files = {}) => ({
      id,
      format: 'terminal-bench',
      place: writeTask(id, { ...smallestTerminalBench, ...files }),
    }),
    [Symbol.dispose]() {
      chmodSync(folder, 0o700);
      rmSync(folder, { recursive: true });
    },
  };
}

/** The case of a task, which must be readable, with what was noted of the task. */
export function taskOf(found: FoundTask) {
  const read = readTask(found);
  if (!read.task) throw new Error(`it cannot be read: ${JSON.stringify(read)}`);
  const { entry, named, remarks } = read.task;
  return { ...entry, placed: [...named.values()].flat(), notes: remarks.notes, obstacles: remarks.obstacles };
}

/** What is wrong with a task that cannot be read, as `task.toml:3:1: path: message`. */
export function issuesOf(found: FoundTask): string[] {
  const { issues } = readTask(found);
  if (issues.length === 0) throw new Error(`it is readable: ${found.place}`);
  return issues.map((issue) => shortIssue(issue, found.place));
}

/** An issue with the path of its file in the task. */
function shortIssue({ file, line, column, path, message }: FileIssue, place: string): string {
  const name = file.startsWith(`${place}/`) ? file.slice(place.length + 1) : file;
  return `${name}:${line}:${column}: ${path === '' ? '' : `${path}: `}${message.replaceAll(place, '.')}`;
}

/** What a task cannot get here: `feature` and where. */
export function obstaclesOf(found: FoundTask): string[] {
  return taskOf(found).obstacles.map(
    ({ feature, ...at }) => `${feature} ${shortIssue(at, found.place).replace(/: .*/s, '')}`,
  );
}

/** What was noted of a task: the kind and where. */
export function notesOf(found: FoundTask): string[] {
  return taskOf(found).notes.map(
    ({ kind, ...at }) => `${kind} ${shortIssue(at, found.place).replace(/: .*/s, '')}`,
  );
}
