import { basename } from 'node:path';
import { z } from 'zod';
import type { OracleSource, TestsSource } from '../../suite/tests-source.ts';
import { readYamlFile } from '../../suite/yaml-file.ts';
import { hostLogs, mainImage } from '../compose/compose-file.ts';
import { readCompose } from '../compose/read-compose.ts';
import { checkDocument, Seconds } from '../document.ts';
import {
  environmentIn,
  type FolderReading,
  type FoundTask,
  placedIn,
  type Task,
  taskReading,
} from '../task.ts';
import { issueAt, TaskFolder } from '../task-folder.ts';

const testsFolder = '/tests';
const script = 'run-tests.sh';

/**
 * Reads a task in the format of Terminal-Bench 1. Throws `BadFile` with all problems of the first of its
 * files that has any, and `input` errors for files that cannot be read.
 */
export function readTerminalBenchTask({ id, place }: FoundTask): Task {
  const folder = new TaskFolder(place);
  folder.requireFile('task.yaml');
  const document = readYamlFile(folder.at('task.yaml'), z.unknown(), { reach: folder.reach, merge: true });
  const reading = { ...taskReading(document), folder };
  const { remarks } = reading;
  const yaml = checkDocument(document, TaskYaml, remarks);
  if (yaml.descriptions) remarks.uses('older-instruction', document.issue(['descriptions'], ''));
  if (yaml.env_name) remarks.uses('shared-environment', document.issue(['env_name'], yaml.env_name));
  if (yaml.run_tests_in_same_shell)
    remarks.uses('tests-in-same-shell', document.issue(['run_tests_in_same_shell'], ''));
  if (yaml.test_scripts)
    remarks.note('not-used', document.issue(['test_scripts'], `is ignored: ${script} runs the tests`));
  remarks.uses('open-network', document.issue([], ''));
  const entry = {
    id,
    ...(yaml.tags.length > 0 && { tags: yaml.tags }),
    variables: { instruction: yaml.instruction },
    environment: environmentIn(reading, ['environment'], {
      ...composedIn(reading),
      timeouts: { harness: yaml.max_agent_timeout_sec },
    }),
    tests: { ...readTests(reading, yaml), threshold: 1 },
    solution: readSolution(reading),
    artifacts: [],
  };
  return { ...reading, entry };
}

function composedIn(reading: FolderReading) {
  const { folder } = reading;
  folder.requireFile('docker-compose.yaml');
  return readCompose({
    reading,
    file: folder.at('docker-compose.yaml'),
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
}

function readTests(reading: FolderReading, yaml: TaskYaml): Omit<TestsSource, 'threshold'> {
  const { folder, document, remarks, own } = reading;
  const hasScript = folder.isFile(script);
  if (!hasScript) remarks.uses('no-tests', { ...document.issue([], 'is missing'), file: folder.at(script) });
  const tests = folder.folder('tests');
  const placed = [
    ...(tests === undefined ? [] : [{ from: tests, to: testsFolder, ignored: [] }]),
    ...(hasScript ? [{ from: folder.at(script), to: `${testsFolder}/${script}`, ignored: [] }] : []),
  ];
  own.push(...placed.map(({ from }) => from));
  const { parser_name: parser } = yaml;
  const isKnown = parser === 'pytest' || parser === 'swebench';
  if (!isKnown) remarks.uses('unknown-parser', document.issue(['parser_name'], parser));
  return {
    ...placedIn(reading, ['tests'], placed),
    command: ['bash', `${testsFolder}/${script}`],
    env: {},
    timeout: yaml.max_test_timeout_sec,
    ...(isKnown && { prints: parser }),
    collect: [],
    in: 'same',
  };
}

function readSolution(reading: FolderReading): OracleSource | undefined {
  const { folder, remarks, own } = reading;
  if (folder.isFile('solution.sh')) {
    const [from, to] = [folder.at('solution.sh'), '/oracle/solution.sh'];
    own.push(from);
    const placed = placedIn(reading, ['solution'], [{ from, to, ignored: [] }]);
    return { command: ['bash', to], ...placed, env: {} };
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
