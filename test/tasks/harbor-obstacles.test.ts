import { describe, expect, test } from 'vitest';
import { eachTaskSet, set } from './each-task-set.ts';
import { notesOf, obstaclesOf, taskOf } from './task-set.ts';

eachTaskSet();

const toml = (text: string) => ({ 'task.toml': text });

describe('what cannot run here is an obstacle at its key', () => {
  const head = 'agent.timeout_sec = 1\nenvironment.network_mode = "no-network"\n';
  test.each([
    ['environment.gpus = 2', 'gpu task.toml:3:13'],
    ['environment.tpu = { type = "v4", topology = "2x2" }', 'tpu task.toml:3:13'],
    ['environment.os = "windows"', 'windows task.toml:3:13'],
    [
      'environment.mcp_servers = [{ name = "m", transport = "streamable-http", url = "http://m.example" }]',
      'mcp-elsewhere task.toml:3:73',
    ],
    ['environment.mcp_servers = [{ name = "a b", url = "http://localhost" }]', 'mcp-name task.toml:3:30'],
    [
      `environment.mcp_servers = [{ name = "m", url = "http://localhost", headers = { A = "\${KEY}" } }]`,
      'host-variable task.toml:3:68',
    ],
    [`environment.env.KEY = "\${KEY}"`, 'host-variable task.toml:3:17'],
    [
      'agent.network_mode = "allowlist"\nagent.allowed_hosts = ["*.a.example", "10.0.0.0/8"]',
      'unknown-host task.toml:4:39',
    ],
    ['agent.allowed_hosts = ["https://a.example/x"]', 'unknown-host task.toml:3:24'],
    ['verifier.collect = [{ command = "sync", service = "db" }]', 'service-collect-hook task.toml:3:10'],
    ['artifacts = ["/a", "//"]', 'whole-artifact task.toml:3:20'],
    ['artifacts = [{ source = "/a", service = "db" }]', 'service-artifact task.toml:3:14'],
    ['schema_version = "2.0"', 'schema-version task.toml:3:1'],
    ['verifier.timout_sec = 5', 'mistyped-key task.toml:3:10'],
    ['verifier.timeoutSec = 5', 'mistyped-key task.toml:3:10'],
    ['environment.memory-mb = 5', 'mistyped-key task.toml:3:13'],
    ['[verifer]\ntimeout_sec = 5', 'mistyped-key task.toml:3:2'],
  ])('%s', (line, obstacle) => {
    const files = { 'tests/test.bat': '', ...toml(`${head}${line}\n`) };
    expect(obstaclesOf(set.harbor('task', files))).toContain(obstacle);
  });

  test('a missing test.sh', () => {
    const found = set.harbor('task', { 'tests/test.sh': null, 'tests/other.sh': '' });
    expect(obstaclesOf(found)).toEqual(['no-tests tests/test.sh:1:1']);
  });

  test('an entrypoint of the image', () => {
    const files = { 'environment/Dockerfile': 'FROM debian\nCOPY start.sh /\nENTRYPOINT ["/start.sh"]\n' };
    const found = set.harbor('task', files);
    expect(notesOf(found)).toContain('image-entrypoint environment/Dockerfile:3:1');
    expect(obstaclesOf(found)).toEqual([]);
    const image = { ...files, ...toml(`${head}environment.docker_image = "python:3"\n`) };
    const other = set.harbor('other', image);
    expect(notesOf(other)).not.toContain('image-entrypoint environment/Dockerfile:3:1');
    // It has an entrypoint of its own, or none.
    expect(taskOf(other).environment?.startUp).toEqual({ command: ['sh', '-c', 'sleep infinity'] });
  });

  test('a working folder of the image that cannot be the workspace', () => {
    const found = (id: string, folder: string, more = '') =>
      set.harbor(id, {
        'environment/Dockerfile': `FROM debian\nWORKDIR ${folder}\n`,
        ...(more && toml(`${head}${more}\n`)),
      });
    expect(obstaclesOf(found('etc', '/etc'))).toEqual(['system-workdir environment/Dockerfile:2:1']);
    expect(obstaclesOf(found('other', '/etc', 'environment.workdir = "/app"'))).toEqual([]);
    expect(obstaclesOf(found('below', '/tmp/work'))).toEqual([]);
    expect(notesOf(found('root', '/'))).toContain('root-workdir environment/Dockerfile:2:1');
    for (const folder of ['tmp', 'home', 'opt']) {
      const shared = found(folder, `/${folder}`);
      expect(obstaclesOf(shared)).toEqual([]);
      expect(notesOf(shared)).toContain('shared-workdir environment/Dockerfile:2:1');
      const named = found(`named-${folder}`, '/app', `environment.workdir = "/${folder}"`);
      expect(notesOf(named)).toContain('shared-workdir task.toml:3:13');
    }
  });
});

describe('what is done in another way, or ignored, is a note at its key', () => {
  const head = 'agent.timeout_sec = 1\nenvironment.network_mode = "no-network"\n';
  test.each([
    ['environment.base_image = "a"', 'unknown-key task.toml:3:13'],
    ['[[sources]]\nname = "a"', 'unknown-key task.toml:3:3'],
    ['environment.memory = "2G"', 'deprecated-key task.toml:3:13'],
    ['environment.storage = "10G"', 'deprecated-key task.toml:3:13'],
    ['environment.allow_internet = false', 'deprecated-key task.toml:3:13'],
    ['multi_step_reward_mode = "mean"', 'deprecated-key task.toml:3:1'],
    [`verifier.env.KEY = "\${KEY:-none}"`, 'host-variable-default task.toml:3:14'],
    ['environment.allowed_hosts = ["a"]', 'not-used task.toml:3:13'],
    ['environment.docker_image = "python:3"', 'not-used task.toml:3:13'],
    ['verifier.network_mode = "public"', 'open-network task.toml:3:10'],
    ['agent.network_mode = "allowlist"\nagent.allowed_hosts = ["*.a.example"]', 'listed-hosts task.toml:3:7'],
    ['environment.healthcheck = { command = "true" }', 'healthcheck task.toml:3:13'],
    ['artifacts = ["/app/out"]', 'artifacts task.toml:3:14'],
  ])('%s', (line, note) => {
    const found = set.harbor('task', toml(`${head}${line}\n`));
    expect(notesOf(found)).toContain(note);
    expect(obstaclesOf(found)).toEqual([]);
  });

  test('a network that nobody closed, and an agent without a limit', () => {
    const found = set.harbor('task', toml(''));
    expect(notesOf(found)).toEqual(['open-network task.toml:1:1', 'agent-without-limit task.toml:1:1']);
    expect(taskOf(found).environment?.timeouts?.harness).toBeUndefined();
    expect(taskOf(found).agent?.hosts).toBeUndefined();
  });

  test('older keys for resources and network', () => {
    const found = set.harbor(
      'task',
      toml('environment = { memory = "2G", storage = "512M", allow_internet = false }'),
    );
    expect(taskOf(found)).toMatchObject({
      environment: { resources: { memory: 2 * 1024 ** 3, disk: 512 * 1024 ** 2 } },
      agent: { hosts: [] },
    });
  });
});
