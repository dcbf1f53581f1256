# cmake -DBUILD=<build folder> -DSOURCE=<this folder> -P run.cmake: installs the build into a folder of its own, builds the
# consumer against it with find_package and with pkg-config, and runs both.
set(stage ${BUILD}/consumer/stage)
file(REMOVE_RECURSE ${BUILD}/consumer)
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${stage} --component devel)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD}/consumer/build -G Ninja -DCMAKE_PREFIX_PATH=${stage}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${BUILD}/consumer/build)
run(${BUILD}/consumer/build/consumer)

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc ${stage}/*/rushlight.pc)
  get_filename_component(folder ${pc} DIRECTORY)
  get_filename_component(libdir ${folder} DIRECTORY)
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs ${pc} OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${CXX} ${SOURCE}/main.cpp ${flags} -Wl,-rpath,${libdir} -o ${BUILD}/consumer/by_pkg_config)
  run(${BUILD}/consumer/by_pkg_config)
endif()
