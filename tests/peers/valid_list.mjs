// SPDX-License-Identifier: Apache-2.0
// valid_list.mjs NODE_MODULES: reads lines {"method":…, "result":…} and answers each with a line: "" when the result
// follows the specification's schema as the TypeScript SDKs check it (1.x and 2.x), else the first fault.
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [modules] = process.argv.slice(2)
const load = (path) => import(pathToFileURL(`${modules}/${path}`))
const sdks = { '1.x': await load('@modelcontextprotocol/sdk/dist/esm/types.js'), '2.x': await load('@modelcontextprotocol/core/dist/index.mjs') }
const names = {
  'tools/list': 'ListToolsResultSchema', 'prompts/list': 'ListPromptsResultSchema',
  'resources/list': 'ListResourcesResultSchema', 'resources/templates/list': 'ListResourceTemplatesResultSchema',
}
for await (const line of createInterface({ input: process.stdin })) {
  const { method, result } = JSON.parse(line)
  let fault = ''
  for (const [name, sdk] of Object.entries(sdks)) {
    const checked = sdk[names[method]].safeParse(result)
    if (!checked.success) fault = `${name}: ${JSON.stringify(checked.error.issues[0])}`
  }
  console.log(fault)
}
