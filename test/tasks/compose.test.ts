import { describe, expect, test } from 'vitest';
import { interpolated, splitWords } from '../../src/tasks/compose/compose-file.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { eachTaskSet, set } from './each-task-set.ts';
import { issuesOf, notesOf, obstaclesOf, taskOf } from './task-set.ts';

eachTaskSet();

const file = 'environment/docker-compose.yaml';
const composed = (yaml: string, files: Record<string, string | null> = {}) =>
  set.harbor('task', { [file]: yaml, ...files });

test('main is merged on top of the environment, and the others are services', () => {
  const found = composed(
    `
services:
  main:
    depends_on: [cache]
    user: 1000
    working_dir: /srv
    environment: { MODE: test, LEVEL: 3, DEBUG: true }
    command: sleep infinity
    cpus: 2
    mem_limit: 1gb
  cache:
    image: redis:7
    command: redis-server --save ""
    entrypoint: ["/entry", "-x"]
    environment: ["A=1", "B=x=y"]
    expose: ["6379"]
    container_name: cache
    healthcheck:
      test: ["CMD", "redis-cli", "ping"]
      interval: 1s
      timeout: 1m30s
      start_period: 500ms
      retries: 7
    depends_on:
      db: { condition: service_healthy }
      job: { condition: service_completed_successfully }
  db:
    build:
      context: ./db
      dockerfile: Dockerfile.db
      target: small
      args: [VERSION=3]
    healthcheck: { test: pg_isready }
    deploy: { resources: { limits: { cpus: "0.5", memory: 256M } } }
  job: { build: ./db, healthcheck: { test: ["NONE"] } }
`,
    { 'environment/db/Dockerfile.db': 'FROM a\n', 'environment/db/Dockerfile': 'FROM b\n' },
  );
  const { environment } = taskOf(found);
  expect(environment).toMatchObject({
    build: { context: `${found.place}/environment` },
    workdir: '/srv',
    user: '1000',
    env: { MODE: 'test', LEVEL: '3', DEBUG: 'true' },
    resources: { cpus: 2, memory: 1024 ** 3 },
    nameForServices: 'main',
  });
  expect(environment?.services).toMatchObject({
    cache: {
      image: 'redis:7',
      command: ['redis-server', '--save', ''],
      entrypoint: ['/entry', '-x'],
      env: { A: '1', B: 'x=y' },
      healthcheck: {
        command: ['redis-cli', 'ping'],
        interval: 1000,
        timeout: 90_000,
        startPeriod: 500,
        retries: 7,
      },
      dependsOn: { db: 'healthy', job: 'ended' },
    },
    db: {
      build: {
        context: `${found.place}/environment/db`,
        dockerfile: `${found.place}/environment/db/Dockerfile.db`,
        target: 'small',
        args: { VERSION: '3' },
      },
      healthcheck: { command: 'pg_isready' },
      resources: { cpus: 0.5, memory: 256 * 1024 ** 2 },
    },
    job: { healthcheck: false },
  });
  expect(obstaclesOf(found)).toEqual([]);
});

test('variables in files, names, secrets, links and profiles are read', () => {
  const found = composed(
    `
services:
  main:
    links: ["db:database", db]
    extra_hosts: { blocked.example: 127.0.0.1 }
    env_file: main.env
    environment: { OWN: file loses }
    volumes: ["./data:/data", "kept:/kept", "./one.txt:/etc/one.txt"]
    secrets: [key]
    tmpfs: /scratch
    command: serve --all
    healthcheck: { test: ["CMD", "test", "-e", "/it's"], interval: 1s }
  db:
    image: redis:7
    env_file: [{ path: none.env, required: false }, main.env]
    extra_hosts: ["a.example:10.0.0.7", "b.example=[::1]"]
    shm_size: 256m
  tools: { image: tools, profiles: [debug] }
volumes: { kept: {} }
secrets: { key: { file: one.txt } }
`,
    {
      'environment/main.env':
        '# comment\nOWN=x\nexport A = "two words\\n" # more\nB=\'$A\'\nC=$A!\nD=plain # more\n\nno line\n',
      'environment/data/file': 'data',
      'environment/one.txt': 'one',
    },
  );
  expect(obstaclesOf(found)).toEqual([]);
  expect(notesOf(found)).toContainEqual(expect.stringMatching(/^inactive-service .*:18:\d+$/));
  const env = { A: 'two words\n', B: '$A', C: 'two words\n!', D: 'plain' };
  const { environment } = taskOf(found);
  expect(environment?.env).toEqual({ ...env, OWN: 'file loses' });
  expect(environment?.hosts).toEqual({ 'blocked.example': '127.0.0.1' });
  expect(environment?.healthcheck).toMatchObject({
    command: `'test' '-e' '/it'\\''s'`,
    interval: 1000,
    retries: 3,
  });
  expect(environment?.services).toMatchObject({
    db: {
      aliases: ['database'],
      env: { ...env, OWN: 'x' },
      hosts: { 'a.example': '10.0.0.7', 'b.example': '::1' },
      memoryFolders: ['/dev/shm'],
    },
  });
  const { cases, leftOut } = planTasks({ path: found.place }, { except: [], images: {}, keys: undefined });
  expect(leftOut).toEqual([]);
  expect(cases[0]?.local.environment).toMatchObject({
    startUp: { command: ['serve', '--all'] },
    volumes: ['/kept'],
    hosts: { 'blocked.example': '127.0.0.1' },
  });
  expect(cases[0]?.local.environment.services?.[0]?.place).toBe(`${found.place}/${file}:13:3`);
  const placed = cases[0]?.local.environment.files?.map(({ path }) => path);
  expect(placed?.filter((path) => !path.startsWith('/logs'))).toEqual([
    '/data',
    '/data/file',
    '/etc/one.txt',
    '/run/secrets/key',
    '/scratch',
  ]);
});

test('a service waits until those that it links to have started', () => {
  const found = composed(`
services:
  web: { image: a, links: ["db:database", cache], depends_on: { cache: { condition: service_healthy } } }
  db: { image: b }
  cache: { image: c }
`);
  expect(taskOf(found).environment?.services).toMatchObject({
    web: { aliases: [], dependsOn: { db: 'started', cache: 'healthy' } },
    db: { aliases: ['database'], dependsOn: {} },
    cache: { aliases: [], dependsOn: {} },
  });
});

test('too many services are refused before they are read', () => {
  const serviceLines = Array.from({ length: 2000 }, (_, index) => `  s${index}: { image: a, links: [s0] }\n`);
  const begun = process.cpuUsage();
  const issues = issuesOf(composed(`services:\n${serviceLines.join('')}`));
  const { user, system } = process.cpuUsage(begun);
  expect(issues).toEqual([
    'environment/docker-compose.yaml:1:1: services: there are 2000 services; Offsite runs at most 16',
  ]);
  expect(user + system).toBeLessThan(10_000_000);
});

test('files of a service are copied, and come from the task', () => {
  const found = composed(
    `
services:
  web:
    image: nginx
    volumes:
      - ./site.conf:/etc/site.conf:ro
      - { type: bind, source: ./html, target: /html, read_only: true }
      - data:/data
      - { type: tmpfs, target: /scratch }
      - \${HOST_VERIFIER_LOGS_PATH}:\${ENV_VERIFIER_LOGS_PATH}
    tmpfs: /run/web:size=1m
    configs: [greeting, { source: other, target: /etc/other }]
configs:
  greeting: { content: "hi $$USER" }
  other: { file: ./site.conf }
volumes: { data: {} }
`,
    { 'environment/site.conf': 'x', 'environment/html/index.html': 'x' },
  );
  const { environment, placed } = taskOf(found);
  expect(environment?.services?.web).toMatchObject({
    files: {
      '/etc/site.conf': `${found.place}/environment/site.conf`,
      '/etc/other': `${found.place}/environment/site.conf`,
      '/greeting': expect.stringContaining('task.toml'),
    },
    folders: { '/html': `${found.place}/environment/html` },
    volumes: ['/data'],
    memoryFolders: ['/scratch', '/run/web'],
  });
  expect(placed).toContain('hi $USER');
  expect(notesOf(found)).toEqual([`service-file ${file}:6:9`, `service-file ${file}:7:9`]);
  expect(obstaclesOf(found)).toEqual([]);
});

test('a volume that several containers share is an obstacle', () => {
  const two = (first: string, second: string) =>
    obstaclesOf(
      composed(
        `services:\n  main: { volumes: [${first}] }\n  web: { image: nginx, volumes: [${second}] }\nvolumes: { a: , b: }\n`,
        { 'environment/Dockerfile': 'FROM x' },
      ),
    );
  expect(two('"a:/a"', '"a:/b"')).toEqual([`volume ${file}:3:24`]);
  expect(two('"a:/a"', '"b:/b"')).toEqual([]);
  expect(two('/a', '/a')).toEqual([]);
});

test('services are on one network, by all their names', () => {
  const found = composed(
    `
services:
  main: { build: ., networks: [inner] }
  web: { image: nginx, hostname: www, container_name: task-web, networks: { inner: { aliases: [site] } } }
networks: { inner: { internal: true } }
`,
  );
  expect(taskOf(found).environment?.services?.web?.aliases).toEqual(['site', 'www', 'task-web']);
  expect(obstaclesOf(found)).toEqual([]);
  const apart = 'services:\n  main: { networks: [a] }\n  web: { image: nginx, networks: [a, b] }\n';
  expect(obstaclesOf(composed(apart))).toEqual([`separate-networks ${file}:3:3`]);
});

test.each([
  ['a  "b c" \'d e\'f', ['a', 'b c', 'd ef']],
  ['sh -c "echo \\"x\\" $A"', ['sh', '-c', 'echo "x" $A']],
  ["'' a\\ b 'c\\d'", ['', 'a b', 'c\\d']],
  ['', []],
])('a command is split into words: %s', (text, words) => {
  expect(splitWords(text)).toEqual(words);
});

test('keys are merged from anchors', () => {
  const found = composed(
    `
x-common: &common { environment: { A: "1" }, user: me }
services:
  main:
    <<: *common
    user: other
`,
  );
  expect(taskOf(found).environment).toMatchObject({ env: { A: '1' }, user: 'other' });
  expect(obstaclesOf(found)).toEqual([]);
});

describe('variables', () => {
  test('have the values that the task gives them', () => {
    const found = composed(
      `
services:
  main:
    image: \${PREBUILT_IMAGE_NAME}
    environment: ["C=$CPUS", "M=\${MEMORY}", "T=\${TEST_DIR}", "O=\${OWN:-no}", OWN]
  twin: { image: "\${MAIN_IMAGE_NAME}" }
`,
      {
        'task.toml':
          '[environment]\ndocker_image = "base:1"\ncpus = 2\nmemory_mb = 512\nenv = { OWN = "mine" }\n',
      },
    );
    const { environment } = taskOf(found);
    expect(environment?.image).toBe('base:1');
    expect(environment?.env).toEqual({ C: '2', M: '512M', T: '/tests', O: 'mine', OWN: 'mine' });
    expect(environment?.services?.twin?.image).toBe('base:1');
  });

  test('of nobody are an obstacle, and those of the machine too', () => {
    const found = composed('services:\n  main:\n    environment:\n      A: "$SECRET"\n      B:\n');
    expect(obstaclesOf(found)).toEqual([`compose-variable ${file}:4:7`, `host-variable ${file}:5:7`]);
  });

  const text = (written: string) => {
    const unset: string[] = [];
    const value = interpolated(written, {
      variables: { A: 'a', EMPTY: '', __proto__: null } as unknown as Record<string, string>,
      onUnset: (name) => unset.push(name),
    });
    return [value, ...unset];
  };
  test.each([
    [`$A \${A} $$A $\${A}`, [`a a $A \${A}`]],
    [`\${EMPTY:-x} \${EMPTY-x} \${NONE-x} \${NONE:-x}`, ['x  x x']],
    [`\${NONE:-\${A}} \${NONE:-\${OTHER:-deep}}`, ['a deep']],
    [`\${A:+yes} \${EMPTY:+yes} \${NONE+yes}`, ['yes  ']],
    [`\${NONE:?needed} $OTHER`, [' ', 'NONE', 'OTHER']],
    [`$ $1 \${`, [`$ $1 \${`]],
    [`\${A`, ['a']],
    ['$constructor', ['', 'constructor']],
  ])('%s', (written, read) => {
    expect(text(written)).toEqual(read);
  });

  test('cannot stand for gigabytes', () => {
    const value = Array(1000).fill('$BIG'.repeat(100));
    const variables = { BIG: 'x'.repeat(10_000) };
    expect(() => interpolated(value, { variables, onUnset: () => undefined })).toThrow(/too much text/);
  });
});

describe('what cannot run here is an obstacle at its place', () => {
  test.each([
    ['    privileged: true', `compose-key ${file}:3:5`],
    ['    network_mode: host', `compose-key ${file}:3:5`],
    ['    extra_hosts: ["host.docker.internal:host-gateway"]', `machine-host ${file}:3:5`],
    ['    env_file: ../../.env', `outside-path ${file}:3:5`],
    ['    cap_add: [NET_ADMIN]', `compose-key ${file}:3:5`],
    ['    devices: ["/dev/kvm"]', `compose-key ${file}:3:5`],
    ['    pid: host', `compose-key ${file}:3:5`],
    ['    ipc: host', `compose-key ${file}:3:5`],
    ['    security_opt: ["seccomp=unconfined"]', `compose-key ${file}:3:5`],
    ['    sysctls: { net.core.somaxconn: 1024 }', `compose-key ${file}:3:5`],
    ['    deploy: { replicas: 2 }', `compose-key ${file}:3:15`],
    ['    unheard_of: true', `compose-key ${file}:3:5`],
    ['    volumes: ["/var/run/docker.sock:/var/run/docker.sock"]', `bind-mount ${file}:3:15`],
    ['    volumes: ["../..:/all"]', `bind-mount ${file}:3:15`],
    ['    volumes: ["~/.ssh:/ssh"]', `bind-mount ${file}:3:15`],
    ['    volumes: ["..:/task"]', `bind-mount ${file}:3:15`],
    ['    build: ../../other', `outside-path ${file}:3:5`],
    ['    build: https://github.com/a/b.git', `outside-path ${file}:3:5`],
    ['    build: { context: ., dockerfile: ../../../Dockerfile }', `outside-path ${file}:3:5`],
    [
      '    deploy: { resources: { reservations: { devices: [{ capabilities: [gpu] }] } } }',
      `gpu ${file}:3:44`,
    ],
    ['    build: .\nnetworks: { other: { external: true } }', `separate-networks ${file}:4:13`],
    [
      '    volumes: ["v:/x"]\nvolumes: { v: { driver: local, driver_opts: { o: bind, device: /etc } } }',
      `compose-key ${file}:4:32`,
    ],
    ['    volumes: ["v:/x"]\nvolumes: { v: { external: true } }', `compose-key ${file}:4:17`],
    ['    build: .\ninclude: [other.yaml]', `compose-key ${file}:4:1`],
  ])('%s', (line, obstacle) => {
    expect(obstaclesOf(composed(`services:\n  main:\n${line}\n`))).toContain(obstacle);
  });

  test.each([
    ['    ports: ["80:80"]', `published-port ${file}:3:13`],
    ['    restart: always', `not-used ${file}:3:5`],
    ['    ulimits: { nofile: 4096 }', `not-used ${file}:3:5`],
    ['    cap_drop: [ALL]', `not-used ${file}:3:5`],
    ['    read_only: true', `not-used ${file}:3:5`],
    ['    platform: linux/amd64', `not-used ${file}:3:5`],
    ['    dns: [1.1.1.1]', `not-used ${file}:3:5`],
    ['    entrypoint: ["/entry"]', `image-entrypoint ${file}:3:5`],
    ['    command: serve', `image-entrypoint ${file}:3:5`],
    ['    healthcheck: { test: "true" }', `healthcheck ${file}:3:5`],
    ['    tmpfs: /scratch', `main-memory-folder ${file}:3:5`],
    ['    working_dir: /tmp', `shared-workdir ${file}:3:5`],
  ])('and what is done in another way is a note: %s', (line, note) => {
    const found = composed(`services:\n  main:\n${line}\n`);
    expect(notesOf(found)).toEqual([note]);
    expect(obstaclesOf(found)).toEqual([]);
  });

  test.each([
    'privileged: false',
    'cap_add: [CHOWN, CAP_SETUID]',
    'devices: []',
    'ipc: private',
    'network_mode: bridge',
    'security_opt: ["no-new-privileges:true"]',
    'shm_size: 1gb',
    'scale: 1',
  ])('and what a container has anyway is neither: %s', (line) => {
    const found = composed(`services:\n  main:\n    build: .\n  db:\n    image: redis:7\n    ${line}\n`);
    expect(notesOf(found)).toEqual([]);
    expect(obstaclesOf(found)).toEqual([]);
  });

  test('the reason is told', () => {
    const { obstacles } = taskOf(composed('services:\n  main:\n    privileged: true\n'));
    expect(obstacles[0]?.message).toBe(
      'privileged: it would open the sandbox to the machine: a setting of the compose file is not supported',
    );
  });

  test.each([
    ['    build: { context: ., dockerfile: ../../../Dockerfile }', /^\.\.\/\.\.\/\.\.\/Dockerfile: /],
    ['    env_file: ../../.env', /^\.\.\/\.\.\/\.env: /],
    ['    volumes: ["../..:/all"]', /^\.\.\/\.\. at \/all: /],
  ])('a path is told as it is written: %s', (line, message) => {
    const { obstacles } = taskOf(composed(`services:\n  main:\n${line}\n`));
    expect(obstacles[0]?.message).toMatch(message);
  });

  test('a mount of no file is told by its target', () => {
    const found = composed('services:\n  main:\n    volumes: [{ type: bind, target: /x }]\n');
    const { notes, obstacles } = taskOf(found);
    expect([...notes, ...obstacles][0]?.message).toMatch(/^\/x: /);
  });

  test.each([
    'sleep infinity',
    'tail -f /dev/null',
    '["sleep", "infinity"]',
    '["sh", "-c", "sleep infinity"]',
    '["/bin/bash", "-c", "exec sleep infinity"]',
    '["tail", "-f", "/dev/null"]',
  ])('a main container that only waits is no obstacle: %s', (command) => {
    expect(obstaclesOf(composed(`services: { main: { command: ${command} } }\n`))).toEqual([]);
  });
});

describe('what is wrong is told with its place', () => {
  test.each([
    ['services: []', /^environment\/docker-compose\.yaml:1:1: services: expected keys with values/],
    ['services:\n  db: {}', /:2:3: services\.db: has neither an image nor a build$/],
    [
      'services:\n  main: { depends_on: [db] }',
      /:2:11: services\.main\.depends_on: names db, which is no service/,
    ],
    ['services:\n  main: { cpus: many }', /:2:11: services\.main\.cpus: expected a number of cores/],
    ['services:\n  main: { mem_limit: big }', /:2:11: services\.main\.mem_limit: expected a size/],
    ['services:\n  main: { healthcheck: { test: a, interval: 5 } }', /:2:35: .*healthcheck\.interval: /],
    ...[
      'volumes: ["a:/../x"]',
      'volumes: ["a:b"]',
      'tmpfs: [/..]',
      'tmpfs: "/"',
      'configs: [{ source: c, target: ../x }]',
    ].map((mount): [string, RegExp] => [
      `services:\n  main: { ${mount} }\nconfigs: { c: { content: a } }`,
      /:2:3: services\.main: mounts at ".*", which is no absolute path below \/$/,
    ]),
    ['services:\n  main: { volumes: ["./none:/x"] }', /:2:21: services\.main\.volumes\[0\]: there is no /],
    [
      'services:\n  main: { configs: [none] }',
      /:2:21: services\.main\.configs\[0\]: there is no config none$/,
    ],
    [
      'services:\n  main: { depends_on: [{ db: { condition: service_healthy } }] }',
      /:2:24: services\.main\.depends_on\[0\]: expected a text, but this is keys with values/,
    ],
    [
      'services:\n  main: { extra_hosts: [{ a.example: 10.0.0.1 }] }',
      /:2:25: services\.main\.extra_hosts\[0\]: expected a text, but this is keys with values/,
    ],
    [
      'services:\n  main: { extra_hosts: [5] }',
      /:2:25: services\.main\.extra_hosts\[0\]: expected a text, but this is a number; .*: quote it$/,
    ],
    [
      'services:\n  main: { networks: [{ back: {} }] }',
      /:2:22: services\.main\.networks\[0\]: expected a text, but this is keys with values/,
    ],
    [
      'services:\n  main: { environment: [{ A: 1 }] }',
      /:2:25: services\.main\.environment\[0\]: expected a text$/,
    ],
    ['services:\n  main: { build: ./none }', /:2:11: services\.main\.build: there is no file /],
    ['a: &a [*a]', /itself/],
    ['a: 1\na: 2', /:2:1: this key is written twice/],
  ])('%s', (yaml, issue) => {
    expect(issuesOf(composed(yaml))).toEqual([expect.stringMatching(issue)]);
  });
});
