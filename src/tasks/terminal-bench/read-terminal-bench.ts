import { basename } from 'node:path';
import { z } from 'zod';
import { readYamlFile } from '../../suite/yaml-file.ts';
import { hostLogs, mainImage } from '../compose/compose-file.ts';
import { healthcheckOfMain, readCompose } from '../compose/read-compose.ts';
import { checkDocument, Seconds, type TaskDocument } from '../document.ts';
import { filesBelow } from '../files-below.ts';
import { Remarks } from '../supported.ts';
import {
  type PlacedFolder,
  plainEnvironment,
  type RewardReading,
  type Task,
  type TaskEnvironment,
  type TaskSolution,
} from '../task.ts';
import { issueAt, TaskFolder } from '../task-folder.ts';

const testsFolder = '/tests';
const script = 'run-tests.sh';

/** What a reader of a task's parts works with. */
interface Source {
  folder: TaskFolder;
  document: TaskDocument;
  remarks: Remarks;
}

/**
 * Reads a task in the format of Terminal-Bench 1. Throws `BadFile` with all problems of the first of its
 * files that has any, and `input` errors for files that cannot be read.
 */
export function readTerminalBenchTask(path: string): Task {
  const folder = new TaskFolder(path);
  folder.requireFile('task.yaml');
  const document = readYamlFile(folder.at('task.yaml'), z.unknown(), { reach: folder.reach, merge: true });
  const remarks = new Remarks();
  const source: Source = { folder, document, remarks };
  const yaml = checkDocument(document, TaskYaml, remarks);
  if (yaml.descriptions) remarks.uses('older-instruction', document.issue(['descriptions'], ''));
  if (yaml.env_name) remarks.uses('shared-environment', document.issue(['env_name'], yaml.env_name));
  if (yaml.run_tests_in_same_shell)
    remarks.uses('tests-in-same-shell', document.issue(['run_tests_in_same_shell'], ''));
  if (yaml.test_scripts)
    remarks.note('not-used', document.issue(['test_scripts'], `is ignored: ${script} runs the tests`));
  remarks.uses('open-network', document.issue([], ''));
  const id = basename(folder.path);
  return {
    id,
    name: id,
    format: 'terminal-bench',
    place: folder.path,
    instruction: yaml.instruction,
    environment: readEnvironment(source),
    agent: { timeoutMs: yaml.max_agent_timeout_sec },
    verifier: {
      mode: 'shared',
      timeoutMs: yaml.max_test_timeout_sec,
      env: {},
      tests: readTests(source),
      command: ['bash', `${testsFolder}/${script}`],
      reading: readingOf(source, yaml),
      collect: [],
    },
    solution: readSolution(source),
    steps: [],
    rewardStrategy: 'mean',
    artifacts: [],
    keywords: yaml.tags,
    notes: remarks.notes,
    obstacles: remarks.obstacles,
  };
}

function readEnvironment({ folder, remarks }: Source): TaskEnvironment {
  const file = folder.at('docker-compose.yaml');
  folder.requireFile('docker-compose.yaml');
  const { main, services } = readCompose({
    folder,
    remarks,
    file,
    mainName: 'client',
    base: undefined,
    variables: {
      COMPOSE_PROJECT_NAME: basename(folder.path),
      T_BENCH_TASK_BUILD_CONTEXT_DIR: folder.path,
      T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME: mainImage,
      T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME: 'client',
      T_BENCH_TASK_DOCKER_NAME_PREFIX: basename(folder.path),
      T_BENCH_TEST_DIR: testsFolder,
      T_BENCH_TASK_LOGS_PATH: hostLogs,
      T_BENCH_TASK_AGENT_LOGS_PATH: hostLogs,
      T_BENCH_CONTAINER_LOGS_PATH: '/logs',
      T_BENCH_CONTAINER_AGENT_LOGS_PATH: '/agent-logs',
    },
  });
  return {
    ...plainEnvironment,
    source: main.source,
    services,
    main,
    workdir: main.workdir,
    user: main.user,
    env: main.env,
    cpus: main.cpus,
    memoryBytes: main.memoryBytes,
    healthcheck: healthcheckOfMain(main),
    startUp: { entrypoint: main.entrypoint, command: main.command },
  };
}

function readTests({ folder, document, remarks }: Source): PlacedFolder[] {
  const path = folder.at(script);
  if (!folder.isFile(script)) remarks.uses('no-tests', { ...document.issue([], 'is missing'), file: path });
  const tests = folder.folder('tests');
  if (tests !== undefined) filesBelow(folder, tests);
  return [
    ...(tests === undefined ? [] : [{ from: tests, to: testsFolder, ignored: [] }]),
    { from: path, to: `${testsFolder}/${script}`, ignored: [] },
  ];
}

function readingOf({ document, remarks }: Source, { parser_name: parser }: TaskYaml): RewardReading {
  if (parser === 'pytest' || parser === 'swebench') return { kind: 'printed-tests', parser };
  remarks.uses('unknown-parser', document.issue(['parser_name'], parser));
  return { kind: 'unknown', name: parser };
}

function readSolution({ folder, remarks }: Source): TaskSolution | undefined {
  if (folder.isFile('solution.sh')) {
    const to = '/oracle/solution.sh';
    const files = { from: folder.at('solution.sh'), to, ignored: [] };
    return { kind: 'script', files, command: ['bash', to], env: {} };
  }
  if (folder.isFile('solution.yaml')) remarks.uses('typed-solution', issueAt(folder.at('solution.yaml'), ''));
  return undefined;
}

const difficulties = ['easy', 'medium', 'hard', 'unknown'] as const;

/** The keys of `task.yaml`, as version 0.2.18 of Terminal-Bench has them. */
const TaskYaml = z.object({
  instruction: z.string().min(1),
  difficulty: z.enum(difficulties, { error: `expected one of ${difficulties.join(', ')}` }),
  author_name: z.string().optional(),
  author_email: z.string().optional(),
  category: z.string().optional(),
  tags: z.array(z.string()).default([]),
  parser_name: z.string().min(1).default('pytest'),
  max_agent_timeout_sec: Seconds.default(360_000),
  max_test_timeout_sec: Seconds.default(60_000),
  run_tests_in_same_shell: z.boolean().default(false),
  // These keys are about the recording of a terminal, or are estimates.
  disable_asciinema: z.boolean().optional(),
  estimated_duration_sec: z.number().nullish(),
  expert_time_estimate_min: z.number().nullish(),
  junior_time_estimate_min: z.number().nullish(),
  // Older versions have these.
  descriptions: z.array(z.unknown()).optional(),
  env_name: z.string().nullish(),
  test_scripts: z.array(z.string()).optional(),
});

type TaskYaml = z.output<typeof TaskYaml>;
